"""Reads the questions of lessons. A reader answers a question by a slider or a choice; then a run shows whether the
answer is right."""

import re

from engine.errors import UserError
from presets.checking import check
from presets.conditions import figure, holds
from presets.lessons.text import line

JUDGES = {
    "run": ("tokens_a_step", "passes", "steps", "tokens", "acceptance_rate", "longest_kept"),
    "instrument": ("share", "fits", "best", "gain", "free", "kept", "wait", "drafted", "idle"),
}
"""Judge in the browser -> the readings that a question may use."""
NUMBER = (int, float)
FIELDS = {
    **dict.fromkeys(("ask", "then", "example", "answer", "judge"), str),
    **dict.fromkeys(("choices", "right", "lanes"), list),
    **dict.fromkeys(("least", "most"), str),
    **dict.fromkeys(("slider", "with"), dict),
    "near": NUMBER,
}
SLIDER = {"low": NUMBER, "high": NUMBER, "step": NUMBER, "unit": str}
CLEAR = 0.1
"""The least share by which the winning lane must differ from the next: another recording may swap closer lanes."""
READING = re.compile(r"(\w+) (>=|<=|>|<|==) (-?[\d.]+)")


def question(place: str, given: dict) -> dict:
    """Return a question, with its answer if a finished run decides it. place: what error messages call the question.
    given: the question's fields, as follows. Raises UserError.

    ask, then: the sentences before and after the answer. slider or choices: how a reader answers. judge: "run", the
    reader's own run on the same screen, or "instrument", the screen's instrument at its initial setting with the
    changes in ``with``. Without a judge, the finished run of ``example`` decides. answer: the figure with which a
    slider is compared. near: the largest error of a slider that counts as right. right: a condition for each choice;
    the first choice whose condition is true is right. lanes: instead of right, a lane of a race for each choice; the
    right lane has the least or most of the figure that ``least`` or ``most`` names.
    """
    check(place, given, FIELDS, required=("ask", "then"))
    if ("slider" in given) == ("choices" in given):
        raise UserError(f"{place} must have either a slider or choices.")
    sentences = {**given, "ask": line(given["ask"]), "then": line(given["then"])}
    judge = given.get("judge")
    if judge is not None and judge not in JUDGES:
        raise UserError(f"{place} has the judge {judge!r}; known are: {', '.join(JUDGES)}.")
    if judge != "instrument" and "with" in given:
        raise UserError(f"{place} sets an instrument that does not judge it.")
    if judge != "instrument" and "example" not in given:
        raise UserError(f"{place} has no example whose run decides.")
    decide = _slider if "slider" in given else _choice
    return {**sentences, **decide(place, given, judge)}


def _slider(place: str, given: dict, judge: str | None) -> dict:
    check(f"{place}, its slider,", given["slider"], SLIDER, required=("low", "high", "step"))
    for name in ("answer", "near"):
        if name not in given:
            raise UserError(f"{place} has a slider, but no {name}.")
    _known(place, judge, given["answer"])
    answer = {} if judge == "instrument" else {"value": figure(given["answer"], given["example"])}
    low, high = given["slider"]["low"], given["slider"]["high"]
    if answer and not low <= answer["value"] <= high:
        raise UserError(f"{place}: the answer {answer['value']:.3g} is not on the slider.")
    return answer


def _choice(place: str, given: dict, judge: str | None) -> dict:
    if "lanes" in given:
        return {
            "choices": [line(choice) for choice in given["choices"]],
            **_lane(place, given),
        }
    if (
        "right" not in given
        or len(given["right"]) != len(given["choices"])
        or len(given["right"]) < 2
    ):
        raise UserError(f"{place} must have as many conditions as choices, and two at least.")
    choices = {"choices": [line(choice) for choice in given["choices"]]}
    if judge is not None:
        for condition in given["right"]:
            parsed = READING.fullmatch(condition)
            if parsed is None:
                raise UserError(f"{place}: the condition {condition!r} cannot be read.")
            _known(place, judge, parsed[1])
    if judge == "instrument":
        return choices
    return {**choices, "value": first_true(place, given["right"], given["example"])}


def first_true(place: str, conditions: list[str], example: str) -> int:
    """Return the index of the first condition that is true; the browser chooses in the same way. Raises UserError if
    none is true."""
    for index, condition in enumerate(conditions):
        if holds(condition, example):
            return index
    raise UserError(f"{place}: none of its choices is right: {conditions}.")


def _lane(place: str, given: dict) -> dict:
    """Return the answer to a question whose choices are lanes of a race: {"value": the index of the right choice,
    "close": whether the two best lanes are so close that another recording may make another choice right}. The right
    lane is the one with the lowest value of the figure that ``least`` names, or with the highest value of the figure
    that ``most`` names. place, given: as in ``question``. Raises UserError."""
    lanes = given["lanes"]
    if len(lanes) != len(given["choices"]) or ("least" in given) == ("most" in given):
        raise UserError(f"{place} needs a lane for each choice, and either least or most.")
    measure = given.get("least", given.get("most"))
    values = [figure(f"{lane}.{measure}", given["example"]) for lane in lanes]
    best, second, *_ = sorted(values, reverse="most" in given)
    close = abs(best - second) < CLEAR * max(abs(best), abs(second))
    return {"value": values.index(best), "close": close}


def _known(place: str, judge: str | None, reading: str) -> None:
    if judge is not None and reading not in JUDGES[judge]:
        readings = ", ".join(JUDGES[judge])
        raise UserError(f"{place}: {judge} has no reading {reading!r}; known are: {readings}.")
