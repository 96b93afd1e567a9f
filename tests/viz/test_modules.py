"""The page's scripts as ES modules, and the one script that is made of them."""

import re

import pytest

from app.assets import STYLES as PAGE_STYLES
from app.assets import WEB as PAGE
from tests.viz.modules import FOLDERS, ROOT, scripts
from viz.bundle import LESSON_STYLES, STYLES, WEB, BundleError, in_order, module, script

MODULES = scripts(*FOLDERS)
ENTRIES = [
    PAGE / "main.js",
    PAGE / "site.js",
    WEB / "draftscope.js",
    WEB / "replay.js",
    WEB / "learn" / "draftscope.js",
    WEB / "learn" / "offline.js",
]
LOAD = """async (names) => {
  for (const name of names) {
    try { await import(`/${name}`); } catch (error) { return `${name}: ${error.message}`; }
  }
  return "";
}"""


@pytest.fixture
def served(browser):
    """A page that may load the modules one by one, as files of a site."""
    page = browser.new_page()
    types = {".js": "text/javascript", ".html": "text/html"}

    def answer(route):
        path = ROOT / route.request.url.removeprefix("http://modules.test/")
        body = (
            path.read_text("utf-8") if path.suffix == ".js" else "<!DOCTYPE html><title>t</title>"
        )
        route.fulfill(body=body, content_type=types.get(path.suffix, "text/html"))

    page.route("http://modules.test/**", answer)
    page.goto("http://modules.test/")
    yield page
    page.close()


def name_of(path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_a_browser_loads_each_module(served):
    """A fault of the language, or an import that the other module does not export, is told once: each module is loaded
    after those that it imports, and the first that fails ends it."""
    paths = dict.fromkeys(one.path for entry in ENTRIES for one in in_order(entry))
    assert served.evaluate(LOAD, [name_of(path) for path in paths if path not in ENTRIES]) == ""


def test_all_modules_belong_to_an_entry_and_none_imports_in_a_circle():
    assert {one.path for entry in ENTRIES for one in in_order(entry)} == set(MODULES)


def test_only_entries_make_globals():
    assert [path for path in MODULES if not module(path).exports] == sorted(ENTRIES)
    made = re.compile(r"\b(?:globalThis|window|self)\b[\w.$]*\s*(?:\|\|)?=[^=]")
    assert [
        name_of(p) for p in MODULES if made.search(p.read_text("utf-8")) and p not in ENTRIES
    ] == []


def test_every_export_is_imported():
    imported = {
        (other, name)
        for path in MODULES
        for other, names in module(path).imports.items()
        for name in names
    }
    unused = {
        f"{name_of(path)}: {name}"
        for path in MODULES
        for name in module(path).exports
        if (path, name) not in imported
    }
    tested = "".join(
        file.read_text("utf-8")
        for file in (ROOT / "tests").rglob("*.*")
        if file.suffix in (".py", ".js")
    )
    assert sorted(one for one in unused if f".{one.split()[-1]}" not in tested) == []


def written(folder, **files: str):
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text, "utf-8")
    return folder / "a.js"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"a": 'import { x } from "./b.js";\n', "b": "const x = 1;\n"},
            "a.js imports x, which b.js does not export",
        ),
        ({"a": 'import { x } from "./b.js";\n'}, "a.js imports ./b.js, and there is no such file"),
        (
            {
                "a": 'import { x } from "./b.js";\nexport const y = 1;\n',
                "b": 'import { y } from "./a.js";\nexport const x = 1;\n',
            },
            "in a circle: a.js → b.js → a.js",
        ),
        (
            {"a": 'import x from "./b.js";\n', "b": "export default 1;\n"},
            "another form: import x from",
        ),
        ({"a": "export let x = 1;\n"}, "another form: export let x"),
        ({"a": 'const x = await import("./b.js");\n'}, "another form: import("),
    ],
)
def test_what_cannot_be_joined_is_told(tmp_path, files, told):
    with pytest.raises(BundleError, match=re.escape(told)):
        script(written(tmp_path, **files))


def test_a_script_runs_each_module_once_and_after_its_imports(browser, tmp_path):
    """Names that two modules use do not meet, and comments do not go out."""
    entry = written(
        tmp_path,
        a='import { mine } from "./b.js";\nimport { log } from "./c.js";\n\nconst own = "a";\n'
        "// told in the end\nlog.push(own, mine());\nglobalThis.log = log;\n",
        b='import { log } from "./c.js";\n\nconst own = "b";\nlog.push("b runs");\n\n'
        "/** Not for a browser. */\nexport function mine() {\n  return own;\n}\n",
        c='export const log = ["c runs"];\n',
    )
    text = script(entry)
    assert "told in the end" not in text and "Not for a browser" not in text
    page = browser.new_page()
    page.add_script_tag(content=text)
    assert page.evaluate("log") == ["c runs", "b runs", "a", "b"]
    assert page.evaluate("typeof own") == "undefined"
    page.close()


def test_scripts_are_small_and_make_no_html():
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )
    for path in MODULES:
        source, name = path.read_text("utf-8"), name_of(path)
        assert not forbidden.search(source), name
        assert len(source.splitlines()) <= 250 and max(map(len, source.splitlines())) <= 120, name
        assert "</script" not in source.lower()
        # comments and indents are taken out line by line, so no text may run over lines
        assert not [line for line in source.splitlines() if line.count("`") % 2], name
    styles = [
        *(WEB / name for name in (*STYLES, *LESSON_STYLES)),
        *(PAGE / name for name in PAGE_STYLES),
    ]
    files = {path for folder in FOLDERS for path in folder.rglob("*") if path.is_file()}
    types = {path for path in files if path.name.endswith(".d.ts")}
    assert files == {*MODULES, *types, *styles, PAGE / "mark.svg", PAGE / "site.css"}
    drawing = [path.read_text("utf-8") for path in files if path.is_relative_to(WEB)]
    assert not re.search(r"https?://(?!www\.w3\.org/(2000/svg|1998/Math))", "".join(drawing))
