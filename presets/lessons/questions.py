"""Questions to answer before the run shows it: by a slider or by a choice, and judged by what a run says."""

import re

from engine.errors import UserError
from presets.checking import check
from presets.conditions import figure, holds
from presets.lessons.text import line

JUDGES = {
    "run": ("tokens_a_step", "passes", "steps", "tokens", "acceptance_rate", "longest_kept"),
    "instrument": ("share", "fits", "best", "gain", "free", "kept"),
}
"""What decides in the browser, and the readings that it has."""
NUMBER = (int, float)
FIELDS = {
    **dict.fromkeys(("ask", "then", "example", "answer", "judge"), str),
    **dict.fromkeys(("choices", "right", "lanes"), list),
    **dict.fromkeys(("least", "most"), str),
    "slider": dict,
    "near": NUMBER,
}
SLIDER = {"low": NUMBER, "high": NUMBER, "step": NUMBER, "unit": str}
READING = re.compile(r"(\w+) (>=|<=|>|<|==) (-?[\d.]+)")


def question(place: str, given: dict) -> dict:
    """A question with its answer, as far as a finished run decides it. Raises UserError.

    ask, then: sentences before and after. slider or choices: how it is answered. judge: "run" where the
    reader's own run on the same screen decides, "instrument" where its instrument does; else the
    finished run of ``example``. answer: the figure that a slider is held to, ``near`` by how much it may
    miss. right: for each choice the condition that makes it right; or lanes: for each choice a lane of a
    race, of which the one is right where the figure named by least or most is so.
    """
    check(place, given, FIELDS, required=("ask", "then"))
    if ("slider" in given) == ("choices" in given):
        raise UserError(f"{place} must have either a slider or choices.")
    asked = {**given, "ask": line(given["ask"]), "then": line(given["then"])}
    judge = given.get("judge")
    if judge is not None and judge not in JUDGES:
        raise UserError(f"{place} has the judge {judge!r}; known are: {', '.join(JUDGES)}.")
    if judge != "instrument" and "example" not in given:
        raise UserError(f"{place} has no example whose run decides.")
    decide = _slider if "slider" in given else _choice
    return {**asked, **decide(place, given, judge)}


def _slider(place: str, given: dict, judge: str | None) -> dict:
    check(f"{place}, its slider,", given["slider"], SLIDER, required=("low", "high", "step"))
    for name in ("answer", "near"):
        if name not in given:
            raise UserError(f"{place} has a slider, but no {name}.")
    _known(place, judge, given["answer"])
    told = {} if judge == "instrument" else {"value": figure(given["answer"], given["example"])}
    low, high = given["slider"]["low"], given["slider"]["high"]
    if told and not low <= told["value"] <= high:
        raise UserError(f"{place}: the answer {told['value']:.3g} is not on the slider.")
    return told


def _choice(place: str, given: dict, judge: str | None) -> dict:
    if "lanes" in given:
        return {
            "choices": [line(choice) for choice in given["choices"]],
            "value": _lane(place, given),
        }
    if (
        "right" not in given
        or len(given["right"]) != len(given["choices"])
        or len(given["right"]) < 2
    ):
        raise UserError(f"{place} must have as many conditions as choices, and two at least.")
    told = {"choices": [line(choice) for choice in given["choices"]]}
    if judge is not None:
        for condition in given["right"]:
            found = READING.fullmatch(condition)
            if found is None:
                raise UserError(f"{place}: the condition {condition!r} cannot be read.")
            _known(place, judge, found[1])
    if judge == "instrument":
        return told
    true = [index for index, one in enumerate(given["right"]) if holds(one, given["example"])]
    if len(true) != 1:
        raise UserError(f"{place}: of its choices {len(true)} are right: {given['right']}.")
    return {**told, "value": true[0]}


def _lane(place: str, given: dict) -> int:
    """The index of the lane in which the figure is least, or most."""
    lanes = given["lanes"]
    if len(lanes) != len(given["choices"]) or ("least" in given) == ("most" in given):
        raise UserError(f"{place} needs a lane for each choice, and either least or most.")
    asked = given.get("least", given.get("most"))
    values = [figure(f"{lane}.{asked}", given["example"]) for lane in lanes]
    best = min(values) if "least" in given else max(values)
    if values.count(best) > 1:
        raise UserError(f"{place}: two lanes are alike in {asked}.")
    return values.index(best)


def _known(place: str, judge: str | None, reading: str) -> None:
    if judge is not None and reading not in JUDGES[judge]:
        known = ", ".join(JUDGES[judge])
        raise UserError(f"{place}: {judge} has no reading {reading!r}; known are: {known}.")
