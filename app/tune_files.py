"""The server side of the Tune tab besides measuring: it exports a setting to another engine, imports another engine's
record, makes estimates for another machine, and computes the five numbers called acceptance.

Each function takes one value from a browser and checks its size. If it refuses, it returns {"error"}, one sentence.
"""

import json
from collections.abc import Callable, Mapping
from functools import wraps

from app.settings import LIMITS
from app.tuning import written
from engine.bridges.acceptance_numbers import NUMBERS, numbers_of
from engine.bridges.exportable import exportable
from engine.bridges.exporting import export
from engine.bridges.importing import imported_text
from engine.bridges.record_lines import record_lines
from engine.errors import UserError
from engine.methods import drafters
from engine.printable import one_line
from engine.tune.cost_table import CostTable
from engine.tune.other_machines import Sizes, estimates, pasted
from engine.tune.resuming import resumed
from presets.tuning import earlier_tuning, machine_named

NAME = "This record"
ESTIMATED = 12
"""Most settings for which estimates are made: those that were measured on the most prompts."""
MOST_COUNTED = 10**9
LONGEST = 399
"""Most characters of a refusal, which may quote text from the browser."""
Answer = Callable[[Mapping], dict]


def in_a_sentence(work: Answer) -> Answer:
    """Return the function with refusals as answers: {"error"}, one sentence, also for data of the wrong form."""

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
def tune_earlier(asked: Mapping) -> dict:
    """Return the record of a tuning that was made earlier, with which the tab opens: {"lines"}. asked: {}."""
    return {"lines": earlier_tuning()}


@in_a_sentence
def tune_export(asked: Mapping[str, str]) -> dict:
    """Return the recommended setting in the form of an engine's, or the best one that the engine can express: {"text",
    "synthetic", "notes", "differs", "measured"}. asked: {"record": lines of a tuning, "engine": its key}."""
    lines, engine = record_lines(asked["record"], NAME), asked["engine"]
    setting = export(exportable(lines, NAME, engine), engine)
    return {
        "text": setting.text,
        "synthetic": setting.synthetic,
        "notes": list(setting.notes),
        "differs": setting.differs,
        "measured": setting.measured,
    }


@in_a_sentence
def tune_import(asked: Mapping[str, str]) -> dict:
    """Return another engine's record as lines of a tuning, in one text: {"lines"}. asked: {"name", "text"} of a
    file."""
    return {"lines": "".join(map(written, imported_text(asked["text"], asked["name"][-80:])))}


@in_a_sentence
def tune_estimate(asked: Mapping[str, str]) -> dict:
    """Return ``estimate`` lines in one text: {"lines"}. asked: {"record": lines of a tuning}, and {"machine": its name}
    or {"costs": pasted text}."""
    machine = pasted(asked["costs"]) if "costs" in asked else machine_named(asked["machine"])
    head, *lines = record_lines(asked["record"], NAME)
    measured = resumed(lines, drafters(), CostTable(0), NAME)
    tried = list(measured.candidates.values())
    plain = next((setting for setting in tried if setting.plain), None)
    others = sorted(
        (setting for setting in tried if not setting.plain), key=lambda setting: -setting.prompts
    )
    if plain is None or not others:
        raise UserError("Measure first: an estimate needs what was kept here.")
    draft = head["draft"] and int(head["draft"]["parameters"])
    sizes = Sizes(int(head["target"]["parameters"]), draft)
    texts = [count for count in head["texts"] if 1 <= count <= 64][:8]
    estimated = estimates(machine, others[:ESTIMATED], plain, texts, sizes)
    return {"lines": "".join(map(written, estimated))}


@in_a_sentence
def tune_five(counts: Mapping) -> dict:
    """Return the five numbers: {"numbers": [{"title", "formula", "value", "means", "printed_by"}]}, each value as
    text."""
    plain = [counts.get(name) for name in ("steps", "drafted", "accepted", "new_tokens")]
    nested = [place.get(name) for place in counts["positions"] for name in ("reached", "accepted")]
    if not all(n is None or (type(n) is int and 0 <= n <= MOST_COUNTED) for n in plain + nested):
        raise UserError("Counts are whole numbers from 0.")
    values = numbers_of(counts)
    return {"numbers": [{**n._asdict(), "value": _in_words(values[n.key])} for n in NUMBERS]}


def _in_words(value: float | list | None) -> str:
    """Return the value, rounded to two digits, as text; a list's values in their order; "" for None."""
    if isinstance(value, list):
        return " · ".join(_in_words(item) or "–" for item in value[:16])
    return "" if value is None else f"{float(value):.2f}"
