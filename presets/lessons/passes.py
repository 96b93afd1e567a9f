"""The costs of passes and drafted tokens, from the steps of finished runs; and other machines' peaks."""

from collections import defaultdict
from functools import cache
from statistics import median

from engine.trace import Trace
from presets.conditions import finished
from presets.figures import FIGURES
from presets.machines import machines

FEWEST = 5
"""The fewest steps with the same number of rows; the median of fewer says little."""


@cache
def passes(races: tuple[str, ...]) -> dict:
    """The passes of these races: {"measured": [[rows, milliseconds]], "bytes", "machines"}.

    measured: for each number of rows, the median of one target's passes; a pass has a row for each drafted token and
    one more. bytes: those of the target's weights, all of which a pass reads.
    """
    traces = [trace for race in races for trace in finished(race).values()]
    target = traces[0].run["target"]
    return {
        "measured": sorted([rows, median(took)] for rows, took in _by_rows(traces).items()),
        "bytes": target["parameters"] * (4 if target["dtype"] == "float32" else 2),
        "machines": machines(),
    }


def prices(trace: Trace, plain: Trace) -> dict:
    """A run's α and c: {"alpha", "cost", "drafting", "checking", "drafted", "gain", "speed"}.

    cost: that of a drafted token, in passes of plain decoding: drafting the token, and its share of the time by which
    checking many rows exceeds a pass over one row. speed: measured, as a multiple of plain decoding's.
    """
    one = FIGURES["verify_milliseconds"](plain)
    told = {
        name: FIGURES[name](trace)
        for name in ("acceptance_rate", "tokens_a_step", "drafted_a_step")
    }
    unit = one * (told["drafted_a_step"] or 1.0)
    drafting = FIGURES["draft_milliseconds"](trace) / unit
    checking = max(0.0, FIGURES["verify_milliseconds"](trace) - one) / unit
    return {
        "alpha": told["acceptance_rate"],
        "cost": drafting + checking,
        "drafting": drafting,
        "checking": checking,
        "drafted": told["drafted_a_step"],
        "gain": told["tokens_a_step"],
        "speed": FIGURES["milliseconds_a_token"](plain) / FIGURES["milliseconds_a_token"](trace),
    }


def _by_rows(traces: list[Trace]) -> dict[int, list[float]]:
    """The milliseconds of every pass, by its number of rows, where there are enough such passes."""
    found: dict[int, list[float]] = defaultdict(list)
    for trace in traces:
        for step in trace.steps:
            found[len(step["nodes"]["token"]) + 1].append(step["milliseconds"]["verify"])
    return {rows: took for rows, took in found.items() if len(took) >= FEWEST}
