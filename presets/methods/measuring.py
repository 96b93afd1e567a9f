"""The figures of the method cards, each read from the finished trace of the card's own example, or for a recipe from
the part that it made.

They count tokens, steps and passes, so they do not depend on the machine or on its load.
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
"""Most bytes of a finished trace, because finished traces lie in the repository."""


def draw(card: Card) -> None:
    """Measure the data of the card's figure, and write the figure."""
    module = importlib.import_module(card.drawn_by)
    shown = [one.to_dict(str) for one in module.exhibits(module.measured())]
    file = HERE / "figures" / f"{card.key}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def measure(keys: list[str]) -> None:
    """Draw the figures of these cards, and record their examples and all other own examples that have no trace yet;
    then write the figures of all cards. Raises UserError for a key without a card."""
    known = cards()
    for key in keys:
        if key not in known:
            raise UserError(f"There is no method card {key!r}; known are: {', '.join(known)}.")
    for card in (known[key] for key in keys if known[key].drawn_by):
        draw(card)
    own = [card for card in known.values() if card.own_example]
    made = [card for card in own if card.key in keys or not own_trace(card.key).exists()]
    for card in made:
        _record(card)
    record_checked([card.example for card in made])
    found = {key: found for key, card in sorted(known.items()) if (found := measured(card))}
    MEASURED.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


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
    """The figures of the card's example. For a recipe, those before and after that its part records: the accepted
    lengths, or of a draft the chance that the target keeps its draws at temperature 1; those that were recorded where
    the part is not shipped. Else {}."""
    if card.example:
        return figures(card)
    if card.kind != "recipe":
        return {}
    if not card.available:
        return card.measured
    found = read_config(PRESETS / "models" / "parts" / card.part["name"])
    if BEFORE in found and AFTER in found:
        return {"before": round(float(found[BEFORE]), 2), "after": round(float(found[AFTER]), 2)}
    if "before" in found and "after" in found:
        return {f"kept_{side}": round(found[side][KEPT], 3) for side in ("before", "after")}
    return {}


def figures(card: Card) -> dict:
    """The figures of the finished trace of the card's example.

    tokens_per_step: the final token included. target_passes: those of the whole run, without prefill. acceptance_rate:
    None where nothing was drafted.
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
