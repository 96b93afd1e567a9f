"""Reads the numbers of a lesson from finished runs.

A number is written ``FIGURE of EXAMPLE``, or for a race ``LANE.FIGURE of RACE``. ``LANE.cost of RACE`` is the cost of a
drafted token in passes of plain decoding, and ``LANE.speed of RACE`` the speedup. ``price.FIGURE of KEY`` comes from
the card of a lossy method.
"""

import re

from engine.errors import UserError
from presets import cards
from presets.conditions import Missing, figure, finished
from presets.lessons.passes import prices

ASKED = re.compile(r"(?P<figure>[\w.-]+) of (?P<example>[\w-]+)(?: (?P<form>%|\d))?")


BESIDE_PLAIN = ("cost", "speed")


def number(asked: str) -> dict:
    """Return the node of a number in a text. ``asked`` may end with the number of decimals, or with % for a percentage.

    Raises UserError if it cannot be read, or there is no such figure or run.
    """
    parsed = ASKED.fullmatch(asked.strip())
    if parsed is None:
        raise UserError(f"The number {asked!r} is not written as FIGURE of EXAMPLE.")
    asked_of, _, name = parsed["figure"].rpartition(".")
    if asked_of == "price":
        value, source = _price(name, parsed["example"]), f"the card of {parsed['example']}"
    elif name in BESIDE_PLAIN and asked_of:
        value = _beside_plain(name, asked_of, parsed["example"])
        source = f"the run {parsed['example']}"
    else:
        value = figure(parsed["figure"], parsed["example"])
        source = f"the run {parsed['example']}"
    label = parsed["figure"].replace("_", " ")
    return {"number": written(value, parsed["form"]), "from": f"{label}, from {source}"}


def _price(name: str, key: str) -> float:
    """Return a cost of a lossy method from its card. name: a field of ``engine.trace.price.Price``. Raises
    UserError."""
    card = cards().get(key)
    if card is None:
        raise Missing(f"There is no card {key!r}.")
    if name not in card.price:
        raise UserError(f"No card {key!r} has the price {name!r}.")
    return card.price[name]


def _beside_plain(name: str, lane: str, race: str) -> float:
    """Return "cost" or "speed" of this lane against plain decoding, see ``presets.lessons.passes.prices``. Raises
    UserError."""
    lanes = finished(race)
    if lane not in lanes or "none" not in lanes:
        raise UserError(f"The race {race} has no lane {lane!r}, or none of plain decoding.")
    return prices(lanes[lane], lanes["none"])[name]


def written(value: float, form: str | None = None) -> str:
    if form == "%":
        return f"{100 * value:.0f} %"
    if form is not None:
        return f"{value:.{form}f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.2f}"
