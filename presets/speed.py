"""How fast a run is against plain decoding of the same prompt: both are made in turn, several times, on one machine.

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
"""Rounds, each one run of each kind: so many at least and at most. More are made until the spread of their middle half,
over the root of their number, falls below this share of their median: that is about the standard error of the median if
rounds are independent. A busy moment lasts for several, so errors are about twice as large, and yet another measurement
of the same run lies within ten percent of this one."""
SHORTEST = 8
"""Tokens; over fewer, a busy moment of the machine would be taken for the speed."""
GPU, WEIGHTS = "NVIDIA L4", 8e9
"""The machine of the projection, and its target."""


class Costs(NamedTuple):
    """What a run took: milliseconds of a token, and of a step's draft and pass; a step's rows, passes and tokens."""

    token: float
    draft: float
    verify: float
    rows: float
    passes: float
    gain: float


Round = tuple[Costs, Costs]
"""Plain decoding, then the run."""


def costs(trace: Trace) -> Costs:
    names = ("milliseconds_a_token", "draft_milliseconds", "verify_milliseconds")
    token, draft, verify = (FIGURES[name](trace) for name in names)
    passes = trace.summary["target_calls"] / trace.summary["steps"]
    rows = 1 + FIGURES["drafted_a_step"](trace)
    return Costs(token, draft, verify, rows, passes, FIGURES["tokens_a_step"](trace))


def _ratios(rounds: Sequence[Round]) -> tuple[float, float, float]:
    """The quartiles of how many times as fast as plain decoding the run was."""
    ratios = [plain.token / run.token for plain, run in rounds]
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    return low, middle, high


def settled(rounds: Sequence[Round]) -> bool:
    """Whether further rounds would change little."""
    if len(rounds) < FEWEST:
        return False
    low, middle, high = _ratios(rounds)
    return len(rounds) >= MOST or (high - low) / middle / sqrt(len(rounds)) < SPREAD


def speed(rounds: Sequence[Round]) -> dict:
    """How many times as fast as plain decoding, and why.

    ratio: the median of the rounds; low, high: the range of their middle half. draft, verify, one: milliseconds of a step's draft, of its
    pass over ``rows`` rows, and of a pass of plain decoding. gpu: the projection {"machine", "ratio"}; None for steps
    of another shape than one pass over a draft.
    """
    low, ratio, high = _ratios(rounds)
    plain, run = (
        Costs(*map(median, zip(*side, strict=True))) for side in zip(*rounds, strict=True)
    )
    told = {
        "ratio": ratio,
        "low": low,
        "high": high,
        "draft": run.draft,
        "verify": run.verify,
        "rows": run.rows,
        "one": plain.verify,
    }
    gpu = {"machine": GPU, "ratio": projected(plain, run)} if run.passes == 1 else None
    rounded = {name: round(value, 3) for name, value in told.items()}
    return {**rounded, "rounds": len(rounds), "gpu": gpu}


def projected(plain: Costs, run: Costs) -> float:
    """The ratio on a GPU, where the roofline gives the price of a pass: with the tokens a step measured here, and drafts
    that cost as many passes as here."""
    machine = next(one for one in machines() if one["name"] == GPU)

    def milliseconds(rows: float) -> float:
        return pass_milliseconds(WEIGHTS, rows, machine["bandwidth"], machine["arithmetic"])

    checking, drafting = milliseconds(run.rows) / milliseconds(1), run.draft / plain.verify
    return round(run.gain / (checking + drafting), 2)
