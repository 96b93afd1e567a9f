"""Finds methods: one folder each, named after the method's key.

A folder may hold ``drafter.py``, ``part.py`` (the kind of trained module that its drafter needs), ``rule.py``,
``recipe.py`` and ``card.toml``, besides files of its own. A file ``NAME_suite.py`` is a suite of the bench. The folder
``shared`` holds code that several methods use; its modules ``*_part.py`` define kinds of trained modules that several
methods need.
"""

import importlib
import inspect
import os
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from engine.bounded.time_limit import within
from engine.errors import UserError
from engine.printable import one_line

HERE = Path(__file__).parent / "methods"
PACKAGE = "engine.methods"
SHARED = "shared"
OUTSIDE = "DRAFTSCOPE_METHODS"
"""The environment variable that names a folder of further methods, which are the user's own code."""

_OUTSIDE_PACKAGE = "draftscope_methods"
FAMILIES = ("none", "chain", "tree", "retrieval", "self", "diffusion", "heads")
"""The families in the order in which their methods are offered."""


@cache
def folders() -> dict[str, Path]:
    """Key -> folder of each method, in the order in which the methods are offered: by family, then by the paper's year,
    then by key."""
    paths = [path for path in HERE.iterdir() if (path / "card.toml").is_file()]
    return {path.name: path for path in sorted(paths, key=_place)}


def _place(folder: Path) -> tuple:
    card = tomllib.loads((folder / "card.toml").read_text("utf-8"))
    family, year = card.get("family"), card.get("paper", {}).get("year", 0)
    at = FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
    return at, year, folder.name


def modules(file: str) -> Iterator[tuple[str, ModuleType]]:
    """Yields key and module of each method that has the file ``file``: "drafter", "part", "rule" or "recipe"."""
    for key, folder in folders().items():
        if (folder / f"{file}.py").is_file():
            yield key, importlib.import_module(f"{PACKAGE}.{key}.{file}")


def shared_parts() -> Iterator[ModuleType]:
    """Yields the modules ``*_part.py`` in ``shared``, which define kinds of trained modules that several methods
    need."""
    for path in sorted((HERE / SHARED).glob("*_part.py")):
        yield importlib.import_module(f"{PACKAGE}.{SHARED}.{path.stem}")


def suites() -> dict[str, str]:
    """Name -> module name of every suite of measurements: the files ``NAME_suite.py`` of the bench, and those in the
    folders of methods. No suite is imported."""
    root = HERE.parent
    places = [*(root / "bench").rglob("*_suite.py"), *HERE.glob("*/*_suite.py")]
    return {
        path.stem.removesuffix("_suite"): ".".join(
            (root.name, *path.relative_to(root).with_suffix("").parts)
        )
        for path in sorted(places, key=lambda path: path.stem)
    }


def classes(module: ModuleType, base: type) -> list[type]:
    """The classes defined in a module that can be used directly: subclasses of ``base`` that have a key of their
    own."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and "key" in vars(value)
    ]


def outside() -> Path | None:
    """The folder of further methods, which the environment variable DRAFTSCOPE_METHODS names; None if the variable is
    not set or is empty."""
    named = os.environ.get(OUTSIDE, "").strip()
    return Path(named) if named else None


def outside_folders() -> dict[str, Path]:
    """Name -> folder of each method in the folder of further methods; empty if the environment variable
    DRAFTSCOPE_METHODS is not set. Raises UserError if the variable is set, but not to an existing folder."""
    place = outside()
    if place is None:
        return {}
    if not place.is_dir():
        raise UserError(f"{OUTSIDE} names no folder: {one_line(str(place))}.")
    paths = [path for path in place.iterdir() if path.is_dir() and path.name[0] not in "._"]
    return {path.name: path for path in sorted(paths)}


def outside_module(folder: Path, file: str) -> ModuleType:
    """The imported module ``file`` ("drafter", "rule", "part" or "recipe") from the folder of a method that is not part
    of this repository. Raises UserError, one sentence, whatever the file raises."""
    package = f"{_OUTSIDE_PACKAGE}_{abs(hash(folder.resolve().parent))}"
    if package not in sys.modules:
        parent_package = ModuleType(package)
        parent_package.__path__ = [str(folder.resolve().parent)]
        sys.modules[package] = parent_package
    if not folder.name.isidentifier():
        raise UserError(
            f"The folder of the method {one_line(folder.name)} must have the name of a Python module."
        )
    if not (folder / f"{file}.py").is_file():
        raise UserError(f"The method {one_line(folder.name)} has no {file}.py.")
    return within(
        folder.name,
        f"the import of its {file}.py",
        lambda: importlib.import_module(f"{package}.{folder.name}.{file}"),
    )
