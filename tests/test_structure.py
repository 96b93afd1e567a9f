"""The packages of the project: which may import which, and words that the core must not know."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parents[1]
BELOW = {
    "app": {"viz", "presets", "engine"},
    "presets": {"engine"},
    "viz": {"engine.trace", "engine.core.tree", "engine.errors"},
    "engine": set(),
}
HOUSE = set(BELOW)

GROUND = [
    *("errors", "printable", "text_file", "python_text", "progress", "finding", "remembered"),
    "cache_folder",
]
"""Modules in the root of the engine that every room may use."""
TOP = ["loops", "catalogue", "__main__"]
"""Modules in the root that stand on the rooms."""
ROOTS = dict.fromkeys(GROUND, "") | {
    "finding": "bounded",
    "loops": "core model",
    "catalogue": "core rules methods",
}
"""Module in the root -> the rooms below it. The command line stands on everything."""
FLOORS = {
    "core": "",
    "rules": "core bounded",
    "model": "core",
    "bounded": "",
    "scenes": "",
    "chat": "core model bounded scenes",
    "batch": "core model",
    "fast.kernels": "core",
    "fast.cpu": "core model",
    "fast.gpu": "core model batch fast.kernels",
    "serving": "core model bounded",
    "parts": "core model bounded fast.cpu fast.gpu serving",
    "methods.shared": "core rules model fast.cpu fast.gpu fast.kernels parts",
    "methods": "core rules model bounded fast.cpu fast.gpu parts methods.shared",
    "sizes": "core rules model batch parts loops",
    "trace": "core rules model",
    "continuous": "core",
    "bridges": "core parts methods trace model",
    "serving.vllm": "core methods",
    "run": "core rules model chat parts methods sizes trace loops",
    "training": "core rules model fast.gpu parts methods methods.shared sizes loops run scenes",
    "bench": (
        "core rules model chat batch fast.cpu fast.gpu fast.kernels parts methods methods.shared sizes trace "
        "continuous training loops run"
    ),
    "proof": "core rules model parts methods methods.shared loops",
    "tune": "core rules model chat batch parts methods sizes trace loops run",
    "cli": "core rules parts methods methods.shared proof run tune bridges trace",
}
"""Room of the engine -> the rooms below it."""


def modules(room: str) -> dict[str, Path]:
    """Return dotted name -> file, for each module of a package."""
    found = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, name: str, everywhere: bool = True) -> tuple[str, ...]:
    """Return the dotted names that a file imports, or only those that it imports while it is itself imported."""
    return _both(path, name)[0 if everywhere else 1]


@cache
def _both(path: Path, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return both answers of ``imports``, of which each file is parsed once."""
    package, tree = name if path.stem == "__init__" else name.rpartition(".")[0], tree_of(path)
    return (
        tuple(_imports(ast.walk(tree), package)),
        tuple(_imports(at_module_level(tree.body), package)),
    )


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    for node in nodes:
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


def room_of(name: str) -> str:
    """Return the room of a module of the engine; for a module in the root, its own name."""
    parts = name.split(".")[1:] or [""]
    if parts[0] == "methods":
        return "methods.shared" if parts[1:2] == ["shared"] else "methods"
    return ".".join(parts[: 2 if parts[0] == "fast" or parts[:2] == ["serving", "vllm"] else 1])


def method_of(name: str) -> str | None:
    """Return the folder of the method to which a module belongs."""
    parts = name.split(".")
    return parts[2] if parts[:2] == ["engine", "methods"] and len(parts) > 2 else None


@pytest.mark.parametrize("room", FLOORS | ROOTS)
def test_the_rooms_of_the_engine_import_downwards(room):
    """Hidden imports included, in functions and for types."""
    wrong = []
    for name, path in ENGINE.items():
        if room_of(name) != room or (room in FLOORS and name == f"engine.{room}"):
            continue
        below = {room, *GROUND, *(FLOORS | ROOTS)[room].split()}
        if path.stem == "recipe" or path.stem.endswith("_training"):
            below.add("training")
        if path.stem.endswith("_suite"):
            below |= {"bench", *FLOORS["bench"].split()}
        for imported in imports(path, name):
            if imported in ENGINE and room_of(imported) not in below:
                wrong.append(f"{name} imports {imported}")
    assert not wrong


def test_every_room_has_its_floor_and_the_root_is_small():
    rooms = {room_of(name) for name in ENGINE if name.count(".") > 1} - {"fast"}
    assert rooms == set(FLOORS)
    root = [path.stem for path in (ROOT / "engine").glob("*.py")]
    assert sorted(root) == sorted([*GROUND, *TOP, "__init__"]) and len(root) <= 12


def test_no_method_imports_another():
    wrong = [
        f"{name} imports {imported}"
        for name, path in ENGINE.items()
        if (own := method_of(name)) not in (None, "shared")
        for imported in imports(path, name)
        if method_of(imported) not in (None, "shared", own)
    ]
    assert not wrong


def test_the_bench_imports_no_method():
    """What it measures of one method is found in the method's folder, or in its card."""
    wrong = [
        f"{name} imports {imported}"
        for name, path in ENGINE.items()
        if room_of(name) == "bench"
        for imported in imports(path, name)
        if method_of(imported) not in (None, "shared", "drafter", "drafters")
    ]
    assert not wrong


def test_file_names_of_the_engine_are_unique():
    often = {"__init__", "__main__", "drafter", "part", "recipe", "rule", "device"}
    stems = Counter(path.stem for path in ENGINE.values() if path.stem not in often)
    assert [stem for stem, count in stems.items() if count > 1] == []


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


HIDDEN = {
    *("model.going_on", "model.language_model", "model.session"),
    *("fast.gpu.static_model", "fast.gpu.static_session"),
    *("methods.chain.device", "methods.chain.drafter"),
    *("methods.dflash.device", "methods.dflash.drafter"),
    *("methods.kangaroo.fast", "methods.kangaroo.part"),
}
"""Modules that only an import in a function, or one for types, joins in a circle. There are to be fewer, never more."""


def test_no_more_circles_close_through_hidden_imports():
    graph = networkx.DiGraph(
        (name, imported)
        for name, path in ENGINE.items()
        for imported in imports(path, name)
        if imported in ENGINE and imported != name
    )
    circles = [part for part in networkx.strongly_connected_components(graph) if len(part) > 1]
    assert {name.removeprefix("engine.") for part in circles for name in part} == HIDDEN


def circle(graph: dict[str, set[str]]) -> list[str] | None:
    """Return one path of imports from a module back to itself, or None."""
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
    if room_of(name) in ("core", "model") or path.stem == "drafter"
]
DEVICE_WORDS = {"ids": (), "on_device": (), "shape": ("tree",), "buffer_sets": ()}
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


def test_the_files_to_read_first_are_short():
    """docs/reading-order.md promises twenty minutes, and the same for the page."""
    text = (ROOT / "docs" / "reading-order.md").read_text("utf-8")
    engine, page = text.split("## Six files that explain the page")
    for part in (engine, page):
        named = re.findall(r"`([\w/-]+\.(?:py|js))`", part.partition("Then, as you need")[0])
        assert len(named) == 6
        for name in named:
            assert len((ROOT / name).read_text("utf-8").splitlines()) <= 150, name
