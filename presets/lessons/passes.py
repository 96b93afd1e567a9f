"""Computes the costs of passes and drafted tokens from the steps of finished runs."""

from collections import defaultdict
from functools import cache
from statistics import median

from engine.trace import Trace
from presets.conditions import finished
from presets.figures import FIGURES
from presets.machines import machines

FEWEST = 5
"""The fewest steps with the same number of rows that are used; the median of fewer steps says little."""


@cache
def passes(races: tuple[str, ...]) -> dict:
    """Return the costs of passes in these races: {"measured": [[rows, milliseconds]], "bytes", "machines"}.

    measured: for each number of rows, the median time of the target's passes; a pass has a row for each drafted token
    and one more. bytes: the size of the target's weights, all of which a pass reads. machines: see
    ``presets.machines``.
    """
    traces = [trace for race in races for trace in finished(race).values()]
    target = traces[0].run["target"]
    return {
        "measured": sorted([rows, median(took)] for rows, took in _by_rows(traces).items()),
        "bytes": target["parameters"] * (4 if target["dtype"] == "float32" else 2),
        "machines": machines(),
    }


def prices(trace: Trace, plain: Trace) -> dict:
    """Return a run's α and c: {"alpha", "cost", "drafting", "checking", "drafted", "gain", "speed"}.

    alpha: the acceptance rate. cost: the cost of a drafted token in passes of plain decoding, the sum of drafting and
    checking. drafting: drafting the token. checking: its share of the time by which a pass over many rows exceeds a
    pass over one row. drafted, gain: drafted and new tokens of a step. speed: the measured speedup against plain
    decoding.
    """
    plain_pass = FIGURES["verify_milliseconds"](plain)
    figures = {
        name: FIGURES[name](trace)
        for name in ("acceptance_rate", "tokens_a_step", "drafted_a_step")
    }
    unit = plain_pass * (figures["drafted_a_step"] or 1.0)
    drafting = FIGURES["draft_milliseconds"](trace) / unit
    checking = max(0.0, FIGURES["verify_milliseconds"](trace) - plain_pass) / unit
    return {
        "alpha": figures["acceptance_rate"],
        "cost": drafting + checking,
        "drafting": drafting,
        "checking": checking,
        "drafted": figures["drafted_a_step"],
        "gain": figures["tokens_a_step"],
        "speed": FIGURES["milliseconds_a_token"](plain) / FIGURES["milliseconds_a_token"](trace),
    }


def _by_rows(traces: list[Trace]) -> dict[int, list[float]]:
    """Return number of rows -> milliseconds of every pass over them, for the numbers with at least FEWEST passes."""
    times: dict[int, list[float]] = defaultdict(list)
    for trace in traces:
        for step in trace.steps:
            times[len(step["nodes"]["token"]) + 1].append(step["milliseconds"]["verify"])
    return {rows: took for rows, took in times.items() if len(took) >= FEWEST}
