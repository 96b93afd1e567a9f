"""Joins the ES modules of the drawing code into scripts that the page and the exported files share.

A browser could load the modules one by one; a page without a server could not. So an entry and all that it imports
become one script, in which each module is a function's scope. Modules keep to the few forms of import and export that
are read here, each on a line of its own that begins with the word; every other form is refused.
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
    """Raised for a module that cannot be part of a script; the message is one sentence."""


@dataclass(frozen=True)
class Module:
    """A script file. imports: file -> the names that are imported from it. exports: the names that it exports."""

    path: Path
    body: str
    """The source without its lines of import, without the word export, and without comments."""
    imports: dict[Path, tuple[str, ...]]
    exports: tuple[str, ...]


@cache
def module(path: Path) -> Module:
    """Return the module in this file. Raises BundleError for a form of import or export that is not read here."""
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
    """Return the entry and all modules that it needs, each after the modules that it imports.

    Raises BundleError for a circle of imports, and for an imported name that its module does not export.
    """
    modules: dict[Path, Module] = {}

    def visit(path: Path, way: tuple[Path, ...]) -> None:
        if path in way:
            circle = " → ".join(module_path.name for module_path in (*way[way.index(path) :], path))
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
    """Return one script with the effect of the module ``entry``. It makes no globals but those that the entry makes."""
    modules = in_order(entry)
    names = {this.path: f"m{number}" for number, this in enumerate(modules)}
    return "\n".join(["(() => {", '"use strict";', *_scopes(modules, names), "})();", ""])


def _scopes(modules: list[Module], names: dict[Path, str]) -> Iterator[str]:
    """Yield the lines of each module as a function that is called at once and returns the module's exports."""
    for this in modules:
        yield f"const {names[this.path]} = (() => {{"
        for other, imported in this.imports.items():
            yield f"const {{ {', '.join(imported)} }} = {names[other]};"
        yield this.body
        yield f"return {{ {', '.join(this.exports)} }};" if this.exports else ""
        yield "})();"


def bundle_js() -> str:
    """Return the script for pages that show runs. It defines ``Draftscope``."""
    return script(WEB / "draftscope.js")


def lesson_js() -> str:
    """Return the script for pages that also show lessons. It replaces the script of ``bundle_js``."""
    return script(WEB / "learn" / "draftscope.js")


@cache
def bundle_css() -> str:
    """Return the styles of the drawing code. Every rule is scoped to ``.ds`` or to a class that begins with ``ds-``."""
    return "\n".join((WEB / name).read_text("utf-8") for name in STYLES)


@cache
def lesson_css() -> str:
    """Return the styles of the lessons, scoped to classes that begin with ``ln``."""
    return "\n".join((WEB / name).read_text("utf-8") for name in LESSON_STYLES)
