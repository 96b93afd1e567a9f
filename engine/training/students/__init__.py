"""Parts that learn from a target, by key; each key is a recipe, in the folder of its method."""

from __future__ import annotations

from functools import cache

from engine.finding import modules
from engine.training.student import Student


@cache
def students() -> dict[str, type[Student]]:
    """Key -> the ``STUDENT`` of the recipe in the method's folder."""
    return {key: module.STUDENT for key, module in modules("recipe")}


def student_class(key: str) -> type[Student]:
    """Raises KeyError for an unknown part."""
    return students()[key]
