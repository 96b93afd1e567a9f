"""Measures how fast a run is against plain decoding: both are made in turn, several times, on one machine.

The clock is the engine's, from its first look at the prompt to the last token.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import median, quantiles
from typing import NamedTuple

from engine.sizes.roofline import pass_milliseconds
from engine.trace import Trace
from presets.figures import FIGURES
from presets.machines import machines

FEWEST, MOST, SPREAD = 21, 80, 0.015
"""The fewest and the most rounds; a round is one run of plain decoding and one of the method. Between them, rounds are
made until the interquartile range of their ratios, divided by the root of their number, falls below SPREAD times their
median. That is about the standard error of the median for independent rounds. A busy moment lasts for several rounds,
so errors are about twice as large; another measurement of the same run lies within ten percent of this one."""
SHORTEST = 8
"""The fewest new tokens of a run whose speed is measured; in a shorter run a busy moment weighs too much."""
GPU, WEIGHTS = "NVIDIA L4", 8e9
"""The machine of the projection, and the bytes of its target's weights."""


class Costs(NamedTuple):
    """The costs of a run. token: milliseconds of a new token. draft, verify: milliseconds of a step's draft and of its
    pass. rows, passes, gain: a step's rows, passes of the target, and tokens."""

    token: float
    draft: float
    verify: float
    rows: float
    passes: float
    gain: float


Round = tuple[Costs, Costs]
"""The costs of plain decoding, then of the run."""


def costs(trace: Trace) -> Costs:
    names = ("milliseconds_a_token", "draft_milliseconds", "verify_milliseconds")
    token, draft, verify = (FIGURES[name](trace) for name in names)
    passes = trace.summary["target_calls"] / trace.summary["steps"]
    rows = 1 + FIGURES["drafted_a_step"](trace)
    return Costs(token, draft, verify, rows, passes, FIGURES["tokens_a_step"](trace))


def _ratios(rounds: Sequence[Round]) -> tuple[float, float, float]:
    """Return the quartiles of the speedup: the ratios of plain decoding's time to the run's time for a token."""
    ratios = [plain.token / run.token for plain, run in rounds]
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    return low, middle, high


def settled(rounds: Sequence[Round]) -> bool:
    """Return whether further rounds would change the median speedup little."""
    if len(rounds) < FEWEST:
        return False
    low, middle, high = _ratios(rounds)
    return len(rounds) >= MOST or (high - low) / middle / sqrt(len(rounds)) < SPREAD


def speed(rounds: Sequence[Round]) -> dict:
    """Return how many times as fast as plain decoding the run is, with the costs that explain it.

    ratio: the median speedup of the rounds. low, high: its quartiles. draft: milliseconds of a step's draft. verify:
    milliseconds of its pass over ``rows`` rows. one: milliseconds of a pass of plain decoding. gpu: the projection
    {"machine", "ratio"}; None for steps of another shape than one pass over a draft.
    """
    low, ratio, high = _ratios(rounds)
    plain, run = (
        Costs(*map(median, zip(*side, strict=True))) for side in zip(*rounds, strict=True)
    )
    figures = {
        "ratio": ratio,
        "low": low,
        "high": high,
        "draft": run.draft,
        "verify": run.verify,
        "rows": run.rows,
        "one": plain.verify,
    }
    gpu = {"machine": GPU, "ratio": projected(plain, run)} if run.passes == 1 else None
    rounded = {name: round(value, 3) for name, value in figures.items()}
    return {**rounded, "rounds": len(rounds), "gpu": gpu}


def projected(plain: Costs, run: Costs) -> float:
    """Return the speedup to expect on a GPU, where the roofline gives the time of a pass. The tokens of a step, and the
    cost of a draft in passes of plain decoding, are taken from this machine."""
    machine = next(candidate for candidate in machines() if candidate["name"] == GPU)

    def milliseconds(rows: float) -> float:
        return pass_milliseconds(WEIGHTS, rows, machine["bandwidth"], machine["arithmetic"])

    checking, drafting = milliseconds(run.rows) / milliseconds(1), run.draft / plain.verify
    return round(run.gain / (checking + drafting), 2)
