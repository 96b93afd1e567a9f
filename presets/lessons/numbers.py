"""Numbers of a lesson, taken from finished runs: ``FIGURE of EXAMPLE``, or for a race ``LANE.FIGURE of RACE``."""

import re

from engine.errors import UserError
from presets.conditions import figure

ASKED = re.compile(r"(?P<figure>[\w.-]+) of (?P<example>[\w-]+)(?: (?P<form>%|\d))?")


def number(asked: str) -> dict:
    """The node of a number in a text. ``asked`` may end with the number of decimals, or with % for a percentage.

    Raises UserError where it cannot be read, or where there is no such figure or run.
    """
    found = ASKED.fullmatch(asked.strip())
    if found is None:
        raise UserError(f"The number {asked!r} is not written as FIGURE of EXAMPLE.")
    value = figure(found["figure"], found["example"])
    return {
        "number": written(value, found["form"]),
        "from": f"{found['figure'].replace('_', ' ')}, from the run {found['example']}",
    }


def written(value: float, form: str | None = None) -> str:
    if form == "%":
        return f"{100 * value:.0f} %"
    if form is not None:
        return f"{value:.{form}f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.2f}"
