"""The Methods tab: one line per method, which opens. Static data, sent once; the browser draws and filters it."""

from dataclasses import replace

from app import words
from app.menu import FAMILIES
from app.parts import html, lead
from presets import cards, outside_cards, presets, scaling
from presets.methods import SCALING
from viz.scaling import scaling_exhibits

TOLD = (
    *("key", "title", "kind", "family", "exactness", "needs_training", "available"),
    *("mechanism", "watch", "paper", "claim", "part", "example", "figure", "measured"),
    *("price", "loses"),
)
"""The fields of a card that the page shows."""


def shelf() -> dict:
    """The cards in the order of their families, of each those first that an example of Watch shows; and the families in
    words."""
    families = {**FAMILIES, **words.OTHER_FAMILIES}
    order, examples = list(families), {one.name for one in presets()}
    yours = [replace(card, family="yours") for card in outside_cards()[0].values()]
    known, found = dict(cards()), scaling()
    if found is not None:
        known[SCALING] = replace(known[SCALING], figure=scaling_exhibits(found))
    every = sorted(
        [*known.values(), *yours],
        key=lambda card: (order.index(card.family), card.example not in examples),
    )
    return {
        "methods": [{name: getattr(card, name) for name in TOLD} for card in every],
        "families": families,
    }


class Methods:
    """The tab's components. Its cards send the event "chosen" with the name of the example to watch."""

    def __init__(self) -> None:
        lead(words.METHODS_LEAD)
        self.cards = html(
            "DraftscopePage.methods({element: element.querySelector('.pg-mount'), props, "
            "trigger}); /* events: 'chosen' */",
            value="",
            **shelf(),
            elem_id="methods",
        )
