"""The Methods tab: one line per method, which opens into a card. The cards are sent once; the browser filters them."""

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
    """Return the cards and the families in words. The cards are in the order of their families; within a family, cards
    with an example on Watch come first."""
    families = {**FAMILIES, **words.OTHER_FAMILIES}
    order, examples = list(families), {preset.name for preset in presets()}
    yours = [replace(card, family="yours") for card in outside_cards()[0].values()]
    by_key, results = dict(cards()), scaling()
    if results is not None:
        by_key[SCALING] = replace(by_key[SCALING], figure=scaling_exhibits(results))
    every = sorted(
        [*by_key.values(), *yours],
        key=lambda card: (order.index(card.family), card.example not in examples),
    )
    return {
        "methods": [{name: getattr(card, name) for name in TOLD} for card in every],
        "families": families,
    }


class Methods:
    """The components of the Methods tab. Its cards send the event "chosen" with the name of the example to watch."""

    def __init__(self) -> None:
        lead(words.METHODS_LEAD)
        self.cards = html(
            "DraftscopePage.methods({element: element.querySelector('.pg-mount'), props, "
            "trigger}); /* events: 'chosen' */",
            value="",
            **shelf(),
            elem_id="methods",
        )
