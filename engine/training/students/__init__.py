"""Parts that learn from a target, by key; each key is a recipe, in the folder of its method."""

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
    """Key -> the ``STUDENT`` of the recipe in the method's folder; those of this repository alone."""
    return {key: module.STUDENT for key, module in modules("recipe") if hasattr(module, "STUDENT")}


@cache
def other_recipes() -> dict[str, Callable[[argparse.Namespace], None]]:
    """Key -> the function ``recipe`` in the method's folder, for parts that learn in a way of their own. Its docstring is the
    line of help."""
    return {key: module.recipe for key, module in modules("recipe") if hasattr(module, "recipe")}


@cache
def outside_students() -> tuple[dict[str, type[Student]], dict[str, str]]:
    """The students of methods from outside; and, for each method whose recipe cannot be used, the reason, a sentence."""
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
    if not isinstance(options, tuple) or not all(isinstance(one, Option) for one in options):
        raise UserError(
            f"The options of the STUDENT of the method {key} must be a tuple of Option."
        )
    if student.key != key or key in students():
        raise UserError(
            f"The STUDENT of the method {key} must have that key, and no other method's."
        )
    return student


def student_class(key: str) -> type[Student]:
    """Raises KeyError for an unknown part."""
    return {**outside_students()[0], **students()}[key]
