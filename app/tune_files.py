"""What the Tune tab asks of the server besides measuring: a setting for another engine, another engine's record, estimates
for another machine, and the five numbers called acceptance.

Everything comes from a browser, as the one value that gradio hands over: each function checks its size, and answers with
``error``, one sentence, where it refuses.
"""

import json
from collections.abc import Callable, Mapping
from functools import wraps

from app.settings import LIMITS
from app.tuning import written
from engine.bridges.acceptance_numbers import NUMBERS, numbers_of
from engine.bridges.exporting import export
from engine.bridges.importing import imported_text
from engine.bridges.recommended import recommended
from engine.bridges.record_lines import record_lines
from engine.errors import UserError
from engine.methods import drafters
from engine.printable import one_line
from engine.tune.cost_table import CostTable
from engine.tune.other_machines import Sizes, estimates, pasted
from engine.tune.resuming import resumed
from presets.tuning import machine_named

NAME = "This record"
ESTIMATED = 12
"""Settings for which estimates are made: those with the most texts behind them."""
MOST_COUNTED = 10**9
LONGEST = 399
"""Characters of a refusal, which may name what was sent."""
Answer = Callable[[Mapping], dict]


def in_a_sentence(work: Answer) -> Answer:
    """The same function, whose refusals are answers. Data of a stranger that does not fit is refused in one sentence, too."""

    @wraps(work)
    def answered(asked: Mapping) -> dict:
        try:
            if len(json.dumps(asked)) > LIMITS.trace_bytes * 5 // 4:
                raise UserError(f"That is larger than {LIMITS.trace_megabytes} MB.")
            return work(asked)
        except UserError as error:
            return {"error": one_line(str(error)[:LONGEST])}
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            return {"error": "That could not be read; it is not as this page writes it."}

    return answered


@in_a_sentence
def tune_export(asked: Mapping[str, str]) -> dict:
    """The recommended setting in the words of an engine: {"text", "synthetic", "notes"}. asked: {"record", "engine"}."""
    told = export(recommended(record_lines(asked["record"], NAME), NAME), asked["engine"])
    return {"text": told.text, "synthetic": told.synthetic, "notes": list(told.notes)}


@in_a_sentence
def tune_import(asked: Mapping[str, str]) -> dict:
    """The lines of another engine's record, as text: {"lines"}. asked: {"name", "text"} of a file."""
    return {"lines": "".join(map(written, imported_text(asked["text"], asked["name"][-80:])))}


@in_a_sentence
def tune_estimate(asked: Mapping[str, str]) -> dict:
    """``estimate`` lines as text: {"lines"}. asked: {"record"}, and {"machine"}, the name of one, or {"costs"}, as pasted."""
    machine = pasted(asked["costs"]) if "costs" in asked else machine_named(asked["machine"])
    head, *lines = record_lines(asked["record"], NAME)
    measured = resumed(lines, drafters(), CostTable(0), NAME)
    tried = list(measured.candidates.values())
    plain = next((one for one in tried if one.plain), None)
    others = sorted((one for one in tried if not one.plain), key=lambda one: -one.prompts)
    if plain is None or not others:
        raise UserError("Measure first: an estimate needs what was kept here.")
    draft = head["draft"] and int(head["draft"]["parameters"])
    sizes = Sizes(int(head["target"]["parameters"]), draft)
    texts = [count for count in head["texts"] if 1 <= count <= 64][:8]
    found = estimates(machine, others[:ESTIMATED], plain, texts, sizes)
    return {"lines": "".join(map(written, found))}


@in_a_sentence
def tune_five(counts: Mapping) -> dict:
    """The five numbers: {"numbers": [{"title", "formula", "value", "means", "printed_by"}]}, each value in words."""
    plain = [counts.get(name) for name in ("steps", "drafted", "accepted", "new_tokens")]
    each = [one.get(name) for one in counts["positions"] for name in ("reached", "accepted")]
    if not all(
        one is None or (type(one) is int and 0 <= one <= MOST_COUNTED) for one in plain + each
    ):
        raise UserError("Counts are whole numbers from 0.")
    found = numbers_of(counts)
    return {"numbers": [{**one._asdict(), "value": _in_words(found[one.key])} for one in NUMBERS]}


def _in_words(value: float | list | None) -> str:
    """Rounded; of several, in their order. "" for None."""
    if isinstance(value, list):
        return " · ".join(_in_words(one) or "–" for one in value[:16])
    return "" if value is None else f"{float(value):.2f}"
