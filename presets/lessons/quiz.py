"""Reads the closing quiz as plain data. The browser draws the numbers of its questions from the class's seed."""

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
"""Name of an answer that the browser can compute -> the numbers that it needs."""
NUMBER = (int, float)
FIELDS = {
    **dict.fromkeys(("ask", "why", "unit", "compute", "example", "lesson"), str),
    **dict.fromkeys(("choices", "right"), list),
    "numbers": dict,
    "near": NUMBER,
}


def told() -> dict:
    """Return the entry of the quiz in the list of lessons: its title, and how many questions it has."""
    content = tomllib.loads(text_of(FILE))
    return {"title": content["title"], "questions": len(content["question"])}


@cache
def quiz() -> dict:
    """Return the quiz as {"title", "lead", "questions"}. Raises UserError, one sentence. Each question has "ask" and
    "why". A question with a number has "compute", "numbers", "near" and perhaps "unit"; one with choices has "choices"
    and "value", the index of the right choice."""
    content = tomllib.loads(text_of(FILE))
    questions = [
        _question(f"Question {i} of the quiz", entry)
        for i, entry in enumerate(content["question"], 1)
    ]
    return {"title": content["title"], "lead": content["lead"], "questions": questions}


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
    """Return the index of the right choice. The run of ``example`` decides it; without conditions it is the first."""
    if "right" not in given:
        return 0
    if "example" not in given or len(given["right"]) != len(given["choices"]):
        raise UserError(f"{place} needs an example, and a condition for each choice.")
    return first_true(place, given["right"], given["example"])
