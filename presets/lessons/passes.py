"""What passes and drafted tokens cost, from the steps of finished runs; and other machines' peaks."""

import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median

from engine.trace import Trace
from presets.conditions import finished
from presets.figures import FIGURES

MACHINES = Path(__file__).parent / "machines.toml"
FEWEST = 5
"""Steps that read so many rows, below which their median says little."""


@cache
def passes(races: tuple[str, ...]) -> dict:
    """{"measured": [[rows, milliseconds]], "bytes", "machines"}.

    measured: median of the passes of one target over so many rows, those of the drafted tokens and one
    more. bytes: of the target's weights, all of which a pass reads.
    """
    traces = [trace for race in races for trace in finished(race).values()]
    target = traces[0].run["target"]
    return {
        "measured": sorted([rows, median(took)] for rows, took in _by_rows(traces).items()),
        "bytes": target["parameters"] * (4 if target["dtype"] == "float32" else 2),
        "machines": tomllib.loads(MACHINES.read_text("utf-8"))["machine"],
    }


def prices(trace: Trace, plain: Trace) -> dict:
    """What a run says of α and c: {"alpha", "cost", "drafting", "checking", "drafted", "gain", "speed"}.

    cost: of a drafted token, in passes of plain decoding: drafting it, and its share of what the check of many rows
    takes longer than a pass over one. speed: measured, in times of plain decoding.
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
    """The milliseconds of every pass, by its rows, where there are enough of them."""
    found: dict[int, list[float]] = defaultdict(list)
    for trace in traces:
        for step in trace.steps:
            found[len(step["nodes"]["token"]) + 1].append(step["milliseconds"]["verify"])
    return {rows: took for rows, took in found.items() if len(took) >= FEWEST}
