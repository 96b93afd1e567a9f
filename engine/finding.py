"""Looks for methods: one folder each, named after the method's key.

A folder may hold ``drafter.py``, ``part.py`` (the kind of part that its drafter needs), ``rule.py``, ``recipe.py`` and
``card.toml``, beside files of its own. ``shared`` holds what several methods stand on; parts of several methods are
its modules ``*_part.py``.
"""

import importlib
import inspect
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent / "methods"
PACKAGE = "engine.methods"
SHARED = "shared"
FAMILIES = ("none", "chain", "tree", "retrieval", "self", "diffusion", "heads")
"""In the order in which methods are offered."""


@cache
def folders() -> dict[str, Path]:
    """Key -> folder, in the order in which the methods are offered: by family, then by year of the paper, then by key."""
    found = [path for path in HERE.iterdir() if (path / "card.toml").is_file()]
    return {path.name: path for path in sorted(found, key=_place)}


def _place(folder: Path) -> tuple:
    card = tomllib.loads((folder / "card.toml").read_text("utf-8"))
    family, year = card.get("family"), card.get("paper", {}).get("year", 0)
    at = FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
    return at, year, folder.name


def modules(file: str) -> Iterator[tuple[str, ModuleType]]:
    """Key and module, for each method that has such a file: "drafter", "part", "rule" or "recipe"."""
    for key, folder in folders().items():
        if (folder / f"{file}.py").is_file():
            yield key, importlib.import_module(f"{PACKAGE}.{key}.{file}")


def shared_parts() -> Iterator[ModuleType]:
    """The modules of parts that several methods need."""
    for path in sorted((HERE / SHARED).glob("*_part.py")):
        yield importlib.import_module(f"{PACKAGE}.{SHARED}.{path.stem}")


def classes(module: ModuleType, base: type) -> list[type]:
    """The classes defined in a module that can be used as they are: subclasses of ``base`` with a key of their own."""
    return [
        one
        for one in vars(module).values()
        if inspect.isclass(one)
        and issubclass(one, base)
        and one.__module__ == module.__name__
        and "key" in vars(one)
    ]
