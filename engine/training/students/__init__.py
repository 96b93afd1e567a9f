"""Finds the recipes in the folders of the methods. Some are students, each with a key; the others make parts without
training them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path

from engine.core.options import Option
from engine.errors import UserError
from engine.finding import modules, outside_folders, outside_module
from engine.training.student import Student


@cache
def students() -> dict[str, type[Student]]:
    """Key -> the ``STUDENT`` in the recipe of a method's folder, for the methods in this repository."""
    return {key: module.STUDENT for key, module in modules("recipe") if hasattr(module, "STUDENT")}


@cache
def other_recipes() -> dict[str, Callable[[argparse.Namespace], None]]:
    """Key -> the function ``recipe`` in a method's folder, for parts that no student trains. The function's docstring
    is its line in the help text."""
    return {key: module.recipe for key, module in modules("recipe") if hasattr(module, "recipe")}


@cache
def outside_students() -> tuple[dict[str, type[Student]], dict[str, str]]:
    """Two dictionaries for methods that are installed from outside this repository: key -> student; and, for methods
    whose recipe cannot be used, key -> a sentence with the reason."""
    usable, reasons = {}, {}
    for key, folder in outside_folders().items():
        if (folder / "recipe.py").is_file():
            try:
                usable[key] = _outside_student(key, folder)
            except UserError as error:
                reasons[key] = str(error)
    return usable, reasons


def _outside_student(key: str, folder: Path) -> type[Student]:
    student = getattr(outside_module(folder, "recipe"), "STUDENT", None)
    if not isinstance(student, type) or not issubclass(student, Student):
        raise UserError(f"recipe.py of the method {key} must have a STUDENT, a class of Student.")
    missing = [
        name for name in ("key", "summary") if not isinstance(getattr(student, name, 0), str)
    ]
    missing += sorted(student.__abstractmethods__)
    if missing:
        raise UserError(f"The STUDENT of the method {key} lacks {', '.join(missing)}.")
    options = student.options
    if not isinstance(options, tuple) or not all(isinstance(option, Option) for option in options):
        raise UserError(
            f"The options of the STUDENT of the method {key} must be a tuple of Option."
        )
    if student.key != key or key in students():
        raise UserError(
            f"The STUDENT of the method {key} must have that key, and no other method's."
        )
    return student


def student_class(key: str) -> type[Student]:
    """The student of this key. Raises KeyError if there is none."""
    return {**outside_students()[0], **students()}[key]
