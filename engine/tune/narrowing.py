"""Chooses which candidates go on writing: the fastest so far, and those that chance may have made look slower than
they are.

The number of candidates is bounded by successive halving (Jamieson and Talwalkar, Non-stochastic Best Arm
Identification and Hyperparameter Optimization, 2016). Candidates are also dropped earlier if they are slower by more
than chance explains (Maron and Moore, Hoeffding Races, 1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from engine.tune.answering import Speeds, near, ranked
from engine.tune.candidates import Candidate

SOON, FIRST = 2, 6
"""The numbers of prompts of the first two comparisons. After SOON prompts, the margin for chance is still wide, so
only candidates that are far slower are dropped."""
ROUNDS = (SOON, FIRST, 12, 24)
"""After how many prompts the candidates are compared. No comparison follows the last, because the remaining candidates
then differ too little to matter."""
STRAYS, OTHER_SIZE = 0.35, 0.3
"""STRAYS: the share by which a gain measured on one prompt typically differs from the gain on many prompts.
OTHER_SIZE: the share by which another size of a drafter may be faster."""
SURE = 2.5
"""From this many standard errors on, a difference between two candidates on the same prompts is not due to chance."""
ALIKE = 0.03
"""A candidate that is faster than the fastest so far by at most this share need not be found."""
KEPT, FINALISTS = 12, 3
"""KEPT: the most candidates that go on once they have continued FIRST prompts. FINALISTS: the most candidates that are
checked by running."""


def margin(prompts: int) -> float:
    """The share by which a gain measured on this many prompts may differ from the gain on many prompts."""
    return STRAYS / sqrt(prompts)


def chance(candidate: Candidate, fastest: Candidate, prompts: int) -> float:
    """The share by which ``fastest`` may be the faster of the two by chance: at most ``margin``.

    A prompt that suits one drafter mostly suits another size of it, and others like it, so a difference on the same
    prompts strays less than each gain. Its standard error follows from the prompts' own differences, for a ratio of
    sums (Cochran, Sampling Techniques, 1977, 6.3), once there are FIRST prompts."""
    if prompts < FIRST:
        return margin(prompts)
    costs, least = candidate.prompt_costs(prompts), fastest.prompt_costs(prompts)
    if costs is None or least is None:
        return margin(prompts)
    ratio = sum(least) / sum(costs)
    strays = [low - ratio * cost for low, cost in zip(least, costs, strict=True)]
    error = sqrt(prompts / (prompts - 1) * sum(stray**2 for stray in strays)) / sum(costs)
    return min(margin(prompts), SURE * error)


def still_in(
    candidates: Sequence[Candidate],
    speeds: Speeds,
    texts: Sequence[int],
    prompts: int,
    slack: float = 0.0,
) -> list[Candidate]:
    """The candidates that go on writing after ``prompts`` prompts. They are the fastest candidate for one text at a
    time, and all candidates that may be faster by more than the share ``ALIKE``, as far as ``chance`` explains. The
    rest need not be told apart (Bechhofer, A Single-Sample Multiple Decision Procedure, 1954).

    For each other number in ``texts``, the fastest candidate at that number is added, unless one of those already
    chosen is near enough to it at that number. slack: the share by which a candidate may become faster with another
    size; if it is not 0, the number of candidates is not limited.
    """
    most = len(candidates) if slack else max(FINALISTS, KEPT * FIRST // prompts)
    known = ranked(candidates, speeds, 1)
    gains = [speeds[candidate.key, 1].ratio for candidate in known]
    chosen = [
        candidate
        for candidate, gain in zip(known, gains, strict=True)
        if candidate is known[0]
        or gain >= (1 + ALIKE - slack - chance(candidate, known[0], prompts)) * gains[0]
    ][:most]
    for count in texts:
        rivals = near(candidates, speeds, count, slack + margin(prompts))
        if not {rival.key for rival in rivals} & {candidate.key for candidate in chosen}:
            chosen += rivals[:1]
    return chosen
