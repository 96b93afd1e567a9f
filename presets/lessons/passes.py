"""What a pass of the target costs by the rows that it reads, from the steps of finished races; and other machines' peaks."""

import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median

from engine.trace import Trace
from presets.conditions import finished

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


def _by_rows(traces: list[Trace]) -> dict[int, list[float]]:
    """The milliseconds of every pass, by its rows, where there are enough of them."""
    found: dict[int, list[float]] = defaultdict(list)
    for trace in traces:
        for step in trace.steps:
            found[len(step["nodes"]["token"]) + 1].append(step["milliseconds"]["verify"])
    return {rows: took for rows, took in found.items() if len(took) >= FEWEST}
