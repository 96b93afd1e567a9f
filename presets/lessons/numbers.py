"""Numbers of a lesson, taken from finished runs: ``FIGURE of EXAMPLE``, or for a race ``LANE.FIGURE of RACE``;
``LANE.cost of RACE``, the price of a drafted token, and ``LANE.speed of RACE``, as a multiple of plain decoding's;
and ``price.FIGURE of KEY``, from the card of a lossy method."""

import re

from engine.errors import UserError
from presets import cards
from presets.conditions import figure, finished
from presets.lessons.passes import prices

ASKED = re.compile(r"(?P<figure>[\w.-]+) of (?P<example>[\w-]+)(?: (?P<form>%|\d))?")


BESIDE_PLAIN = ("cost", "speed")


def number(asked: str) -> dict:
    """The node of a number in a text. ``asked`` may end with the number of decimals, or with % for a percentage.

    Raises UserError where it cannot be read, or where there is no such figure or run.
    """
    found = ASKED.fullmatch(asked.strip())
    if found is None:
        raise UserError(f"The number {asked!r} is not written as FIGURE of EXAMPLE.")
    asked_of, _, name = found["figure"].rpartition(".")
    if asked_of == "price":
        value, source = _price(name, found["example"]), f"the card of {found['example']}"
    elif name in BESIDE_PLAIN and asked_of:
        value = _beside_plain(name, asked_of, found["example"])
        source = f"the run {found['example']}"
    else:
        value = figure(found["figure"], found["example"])
        source = f"the run {found['example']}"
    told = found["figure"].replace("_", " ")
    return {"number": written(value, found["form"]), "from": f"{told}, from {source}"}


def _price(name: str, key: str) -> float:
    """What a lossy method costs by its card, see ``engine.trace.price.Price``."""
    card = cards().get(key)
    if card is None or name not in card.price:
        raise UserError(f"No card {key!r} has the price {name!r}.")
    return card.price[name]


def _beside_plain(name: str, lane: str, race: str) -> float:
    """A figure of this lane that takes plain decoding as its unit, see ``presets.lessons.passes.prices``."""
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
