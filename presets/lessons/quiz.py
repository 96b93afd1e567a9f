"""The closing quiz: its questions as plain data. The browser draws their numbers from the class's seed."""

import tomllib
from functools import cache
from pathlib import Path

from engine.errors import UserError
from engine.text_file import text_of
from presets.checking import check
from presets.lessons.questions import first_true

FILE = Path(__file__).parent / "quiz.toml"
COMPUTED = {
    "speedup": {"alpha", "c", "k"},
    "keeping": {"p", "q"},
    "plain": {"gigabytes", "bandwidth"},
}
"""The answers that the browser can compute, and the numbers that each needs."""
NUMBER = (int, float)
FIELDS = {
    **dict.fromkeys(("ask", "why", "unit", "compute", "example", "lesson"), str),
    **dict.fromkeys(("choices", "right"), list),
    "numbers": dict,
    "near": NUMBER,
}


def told(file: Path = FILE) -> dict:
    """The quiz's entry in the list of lessons: its title, and how many questions it has."""
    given = tomllib.loads(text_of(FILE))
    return {"title": given["title"], "questions": len(given["question"])}


@cache
def quiz() -> dict:
    """The quiz as {"title", "lead", "questions"}. Each question has ask and why, and either compute, numbers, near and
    unit, or choices and value, the index of the right choice. Raises UserError, one sentence."""
    given = tomllib.loads(text_of(FILE))
    questions = [
        _question(f"Question {i} of the quiz", one) for i, one in enumerate(given["question"], 1)
    ]
    return {"title": given["title"], "lead": given["lead"], "questions": questions}


def _question(place: str, given: dict) -> dict:
    check(place, given, FIELDS, required=("ask", "why", "lesson"))
    if "compute" in given:
        needed = COMPUTED.get(given["compute"])
        if needed is None:
            raise UserError(
                f"{place} computes {given['compute']!r}; known are: {', '.join(COMPUTED)}."
            )
        if set(given.get("numbers", {})) != needed or "near" not in given:
            raise UserError(f"{place} needs numbers for {', '.join(sorted(needed))}, and near.")
        return given
    if len(given.get("choices", ())) < 2:
        raise UserError(f"{place} has neither something to compute nor choices.")
    return {**given, "value": _right(place, given)}


def _right(place: str, given: dict) -> int:
    """The index of the right choice: the one that the run of ``example`` decides, else the first one."""
    if "right" not in given:
        return 0
    if "example" not in given or len(given["right"]) != len(given["choices"]):
        raise UserError(f"{place} needs an example, and a condition for each choice.")
    return first_true(place, given["right"], given["example"])
