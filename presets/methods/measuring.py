"""Records the examples that cards bring themselves, and draws the figures of cards."""

import importlib
import json

from engine.errors import UserError
from presets import trace_text
from presets.checked import record_checked
from presets.finished import FIGURE, beside_card, trace_file
from presets.methods import Card, cards
from presets.recording import record, request_of

LARGEST = 120_000
"""Most bytes of the finished trace of a card's own example, because it lies in the repository."""


def draw(card: Card) -> None:
    """Measure the data of the card's figure, and write the figure to its file."""
    module = importlib.import_module(card.drawn_by)
    shown = [exhibit.to_dict(str) for exhibit in module.exhibits(module.measured())]
    file = beside_card(card.key, FIGURE)
    file.write_text(json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def measure(keys: list[str]) -> None:
    """Draw the figures of these cards, and record their examples and all other own examples that have no trace yet.
    Raises UserError for a key without a card."""
    by_key = cards()
    for key in keys:
        if key not in by_key:
            raise UserError(f"There is no method card {key!r}; known are: {', '.join(by_key)}.")
    for card in (by_key[key] for key in keys if by_key[key].drawn_by):
        draw(card)
    own = [card for card in by_key.values() if card.own_example]
    recorded = [card for card in own if card.key in keys or not trace_file(card.key).exists()]
    for card in recorded:
        _record(card)
    record_checked([card.example for card in recorded])


def _record(card: Card) -> None:
    record(request_of(card.own_example), trace_file(card.key))
    size = len(trace_text(card.key))
    if size > LARGEST:
        raise UserError(
            f"The example of {card.key} has {size:,} bytes; a finished trace has at most "
            f"{LARGEST:,}: give it fewer max_new_tokens."
        )
