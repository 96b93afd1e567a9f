"""The packages of the project: which may import which, and words that the core must not know."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BELOW = {
    "app": {"viz", "presets", "engine"},
    "presets": {"engine"},
    "viz": {"engine.trace", "engine.core.tree", "engine.errors"},
    "engine": set(),
}
HOUSE = set(BELOW)
DEVICE = ("engine.fast.gpu", "engine.fast.kernels")


def modules(room: str) -> dict[str, Path]:
    """Dotted name -> file, for each module of a package."""
    found = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, name: str, everywhere: bool = True) -> Iterator[str]:
    """Dotted names that a file imports, or only those that it imports while it is itself imported."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(tree_of(path)) if everywhere else at_module_level(tree_of(path).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield whole if whole in ENGINE else base


def at_module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from at_module_level(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from at_module_level(node.body)
        else:
            yield node


ENGINE = modules("engine")
INSIDE = {name: path for name, path in ENGINE.items() if not name.startswith(DEVICE)}


def within(name: str, rooms) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


@pytest.mark.parametrize("room", BELOW)
def test_imports_run_downwards(room):
    wrong = []
    for name, path in modules(room).items():
        allowed = {room, *BELOW[room]}
        if name == "engine.__main__":
            allowed.add("presets")
        for imported in imports(path, name):
            if imported.split(".")[0] in HOUSE and not within(imported, allowed):
                wrong.append(f"{name} imports {imported}")
    assert not wrong


def test_gradio_lives_in_app_only():
    found = [
        name
        for room in ("engine", "viz", "presets")
        for name, path in modules(room).items()
        if any(within(imported, ("gradio",)) for imported in imports(path, name))
    ]
    assert not found


def test_only_the_opening_knows_the_rooms_of_the_gpu():
    found = [
        f"{name} imports {imported}"
        for name, path in INSIDE.items()
        for imported in imports(path, name)
        if within(imported, DEVICE) and name != "engine.parts.opening"
    ]
    assert not found


def test_no_circle_among_the_modules_of_the_engine():
    graph = {
        name: {
            one for one in imports(path, name, everywhere=False) if one in ENGINE and one != name
        }
        for name, path in ENGINE.items()
    }
    assert circle(graph) is None
    a, b = "engine.core.tree", "engine.core.decode"
    assert circle({a: {b}, b: {a}}) == [a, b, a], "a circle would be seen"


def circle(graph: dict[str, set[str]]) -> list[str] | None:
    """One path of imports from a module back to itself, or None."""
    done: set[str] = set()

    def search(name: str, way: list[str]) -> list[str] | None:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return None
        for below in sorted(graph[name]):
            found = search(below, [*way, name])
            if found:
                return found
        done.add(name)
        return None

    return next((found for name in graph if (found := search(name, []))), None)


CORE = [
    path
    for name, path in ENGINE.items()
    if name in {f"engine.{one}" for one in ("tree", "decode", "text", "step")}
    or name.startswith(("engine.model", "engine.methods"))
]
DEVICE_WORDS = {
    "ids": (),
    "on_device": (),
    "shape": ("tree",),
    "buffer_sets": (),
}
"""Word -> the names whose attribute it must be; with no names, it is found anywhere. A tensor has a shape."""


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_the_core_has_no_words_of_a_device(path):
    """Trees on a device have tokens of -1 and the attributes ``ids`` and ``shape``; the core knows none of these."""
    assert not device_words(tree_of(path))


def device_words(module: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(module):
        word = next((w for name in ("attr", "id", "arg") if (w := getattr(node, name, None))), None)
        if word in DEVICE_WORDS and is_owned(node, DEVICE_WORDS[word]):
            found.append(f"line {node.lineno}: {word}")
        if isinstance(node, ast.Compare) and "token" in ast.unparse(node.left):
            found += [f"line {node.lineno}: a token of -1" for _ in minus_ones(node.comparators)]
        if isinstance(node, ast.Call) and "token" in ast.unparse(node.func):
            found += [f"line {node.lineno}: a token of -1" for _ in minus_ones(node.args)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_minus_one(node.value):
            name = ast.unparse(node).split(" ")[0]
            means_token = "token" in name or (name.isupper() and name != "ROOT")
            found += [f"line {node.lineno}: {name} is -1"] if means_token else []
    return found


def is_owned(node: ast.AST, owners: tuple[str, ...]) -> bool:
    if not owners:
        return True
    return isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(owners)


def minus_ones(values: list[ast.expr]) -> list[ast.expr]:
    return [one for one in values if is_minus_one(one)]


def is_minus_one(value: ast.AST | None) -> bool:
    return value is not None and ast.unparse(value) == "-1"


@pytest.mark.parametrize(
    "line",
    [
        "tree.ids.tolist()", "on_device = True", "kept.tree.shape", "self.target.buffer_sets",
        "UNKNOWN = -1", "tokens.append(-1)", "token == -1", "def f(ids): pass",
    ],
)  # fmt: skip
def test_such_a_word_would_be_seen(line):
    assert device_words(ast.parse(line))
