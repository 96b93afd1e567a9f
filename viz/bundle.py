"""The drawing code as strings that the page and the exported files share: ES modules, joined in the order of their imports.

A browser could load the modules one by one; a page without a server could not. So an entry and all that it imports
become one script, in which each module is a function's scope. Modules keep to the few forms of import and export that
are read here, each on a line of its own that begins with the word; anything else is refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WEB = Path(__file__).parent / "web"
STYLES = (
    "base.css",
    "tree.css",
    "inspector.css",
    "text.css",
    "picture.css",
    "timeline.css",
    "exhibits.css",
    "compare.css",
    "token.css",
)
LESSON_STYLES = ("learn/learn.css", "learn/instruments.css")

_IMPORT = re.compile(r'^import \{([\w$,\s]*)\} from "(\.\.?/[^"]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:async function|function\*?|const|class) ([\w$]+))", re.MULTILINE
)
_OTHER = re.compile(r"^(?:import|export)\b.*|\bimport\(.*", re.MULTILINE)
_COMMENT = re.compile(r"^[ ]*(?://.*|/\*\*?(?:[^*]|\*(?!/))*\*/[ ]*)$", re.MULTILINE)


class BundleError(ValueError):
    """A module that cannot be part of a script, in one sentence."""


@dataclass(frozen=True)
class Module:
    """A script file: its imports, as names by file, and the names that it exports."""

    path: Path
    body: str
    """The source without its lines of import, without the word export, and without comments."""
    imports: dict[Path, tuple[str, ...]]
    exports: tuple[str, ...]


@cache
def module(path: Path) -> Module:
    """The module in this file. Raises BundleError for a form of import or export that is not read here."""
    source = path.read_text("utf-8")
    imports: dict[Path, tuple[str, ...]] = {}
    for names, where in _IMPORT.findall(source):
        other = (path.parent / where).resolve()
        imports[other] = tuple(name.strip() for name in names.split(",") if name.strip())
        if not other.is_file():
            raise BundleError(f"{path.name} imports {where}, and there is no such file.")
    exports = tuple(_EXPORT.findall(source))
    body = _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", source)))
    strange = _OTHER.search(body)
    if strange:
        raise BundleError(f"{path.name} has an import or export of another form: {strange[0]}")
    lines = (line.strip() for line in body.splitlines())
    return Module(path, "\n".join(line for line in lines if line), imports, exports)


def in_order(entry: Path) -> list[Module]:
    """The entry and all modules that it needs, each after those that it imports.

    Raises BundleError for a circle of imports, and for a name that the other module does not export.
    """
    modules: dict[Path, Module] = {}

    def visit(path: Path, way: tuple[Path, ...]) -> None:
        if path in way:
            circle = " → ".join(one.name for one in (*way[way.index(path) :], path))
            raise BundleError(f"These modules import each other in a circle: {circle}.")
        if path in modules:
            return
        this = module(path)
        for other, names in this.imports.items():
            visit(other, (*way, path))
            for name in names:
                if name not in modules[other].exports:
                    raise BundleError(
                        f"{path.name} imports {name}, which {other.name} does not export."
                    )
        modules[path] = this

    visit(entry.resolve(), ())
    return list(modules.values())


@cache
def script(entry: Path) -> str:
    """One script that does what the module ``entry`` does. Its only globals are those that the entry makes."""
    modules = in_order(entry)
    names = {this.path: f"m{number}" for number, this in enumerate(modules)}
    return "\n".join(["(() => {", '"use strict";', *_scopes(modules, names), "})();", ""])


def _scopes(modules: list[Module], names: dict[Path, str]) -> Iterator[str]:
    """Each module as a function that is called at once and returns the exports."""
    for this in modules:
        yield f"const {names[this.path]} = (() => {{"
        for other, imported in this.imports.items():
            yield f"const {{ {', '.join(imported)} }} = {names[other]};"
        yield this.body
        yield f"return {{ {', '.join(this.exports)} }};" if this.exports else ""
        yield "})();"


def bundle_js() -> str:
    """The script for pages that show runs. It defines ``Draftscope``."""
    return script(WEB / "draftscope.js")


def lesson_js() -> str:
    """The script for pages that also show lessons: it stands in the place of that of ``bundle_js``."""
    return script(WEB / "learn" / "draftscope.js")


@cache
def bundle_css() -> str:
    """All styles. Every rule is scoped to ``.ds`` or to a class that begins with ``ds-``."""
    return "\n".join((WEB / name).read_text("utf-8") for name in STYLES)


@cache
def lesson_css() -> str:
    """The styles of the lessons, scoped to classes that begin with ``ln``."""
    return "\n".join((WEB / name).read_text("utf-8") for name in LESSON_STYLES)
