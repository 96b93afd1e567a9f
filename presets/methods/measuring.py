"""Measures the figures of the method cards.

A card's figures come from the finished trace of its example, or for a recipe from the part that it made. They count
tokens, steps and passes, so they do not depend on the machine or on its load.
"""

import importlib
import json

from engine.errors import UserError
from engine.parts.files import read_config
from engine.trace import read_trace
from engine.training.students.cell_student import AFTER, BEFORE
from engine.training.students.draft_students import KEPT
from presets import trace_text
from presets.checked import record_checked
from presets.methods import HERE, MEASURED, PRESETS, Card, cards, own_trace
from presets.recording import record, request_of

LARGEST = 120_000
"""Most bytes of the finished trace of a card's own example, because it lies in the repository."""


def draw(card: Card) -> None:
    """Measure the data of the card's figure, and write the figure to its file."""
    module = importlib.import_module(card.drawn_by)
    shown = [exhibit.to_dict(str) for exhibit in module.exhibits(module.measured())]
    file = HERE / "figures" / f"{card.key}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def measure(keys: list[str]) -> None:
    """Draw the figures of these cards, record their own examples, and write the measured figures of all cards.

    Own examples of other cards are recorded, too, if they have no trace yet. Raises UserError for a key without a card.
    """
    by_key = cards()
    for key in keys:
        if key not in by_key:
            raise UserError(f"There is no method card {key!r}; known are: {', '.join(by_key)}.")
    for card in (by_key[key] for key in keys if by_key[key].drawn_by):
        draw(card)
    own = [card for card in by_key.values() if card.own_example]
    unrecorded = [card for card in own if card.key in keys or not own_trace(card.key).exists()]
    for card in unrecorded:
        _record(card)
    record_checked([card.example for card in unrecorded])
    values = {key: values for key, card in sorted(by_key.items()) if (values := measured(card))}
    MEASURED.write_text(json.dumps(values, indent=1) + "\n", "utf-8")


def _record(card: Card) -> None:
    file = own_trace(card.key)
    record(request_of(card.own_example), file)
    size = len(trace_text(card.own_example.name))
    if size > LARGEST:
        raise UserError(
            f"{file.stem} has {size:,} bytes; a finished trace has at most "
            f"{LARGEST:,}: give the card's example fewer max_new_tokens."
        )


def measured(card: Card) -> dict:
    """Return the figures of the card's example, or of a recipe, or {} for a card without either.

    The figures of a recipe are those before and after it, which its part records: the accepted lengths, or for a draft
    model the chance that the target accepts its samples at temperature 1. If the part is not shipped, the figures on
    the card stay.
    """
    if card.example:
        return figures(card)
    if card.kind != "recipe":
        return {}
    if not card.available:
        return card.measured
    config = read_config(PRESETS / "models" / "parts" / card.part["name"])
    if BEFORE in config and AFTER in config:
        return {"before": round(float(config[BEFORE]), 2), "after": round(float(config[AFTER]), 2)}
    if "before" in config and "after" in config:
        return {f"kept_{side}": round(config[side][KEPT], 3) for side in ("before", "after")}
    return {}


def figures(card: Card) -> dict:
    """Return the figures of the finished trace of the card's example.

    tokens_per_step: with the final token. target_passes: passes in the whole run, without prefill. acceptance_rate:
    None if nothing was drafted.
    """
    summary = read_trace(trace_text(card.example)).summary
    rate = summary["acceptance_rate"]
    return {
        "new_tokens": summary["new_tokens"],
        "steps": summary["steps"],
        "target_passes": summary["target_calls"],
        "tokens_per_step": round(summary["mean_accepted"], 2),
        "acceptance_rate": None if rate is None else round(rate, 3),
    }
