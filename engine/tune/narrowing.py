"""Chooses the candidates that write on: those that may still turn out to be the fastest.

Successive halving (Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, 2016) bounds how
many they are. Fewer go on where the others have fallen behind by more than chance explains (Maron and Moore, Hoeffding Races, 1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from engine.tune.answering import Speeds, near
from engine.tune.candidates import Candidate

SOON, FIRST = 2, 6
"""Prompts of the first two rounds: after SOON only those go that are far behind."""
ROUNDS = (SOON, FIRST, 12, 24)
"""Prompts after which candidates are compared. After the last, those that are left differ by too little to matter."""
STRAYS, OTHER_SIZE = 0.35, 0.3
"""By what share a gain on one prompt strays from that on many, and by what share another size of a drafter may be faster."""
KEPT, FINALISTS = 12, 3
"""Candidates that write after more than the first prompts, and that are checked; at most."""


def margin(prompts: int) -> float:
    """The share by which a gain measured on this many prompts may differ from the gain on many prompts."""
    return STRAYS / sqrt(prompts)


def still_in(
    candidates: Sequence[Candidate],
    speeds: Speeds,
    texts: Sequence[int],
    prompts: int,
    slack: float = 0.0,
) -> list[Candidate]:
    """The fastest for one text after so many prompts, and those that may turn out to be faster; for each other number of texts the
    fastest, unless one of these may be faster there. slack: the share by which each may do better in another size; with it, any
    number go on."""
    most = len(candidates) if slack else max(FINALISTS, KEPT * FIRST // prompts)
    chosen = near(candidates, speeds, 1, slack + margin(prompts))[:most]
    for count in texts:
        rivals = near(candidates, speeds, count, slack + margin(prompts))
        if not {rival.key for rival in rivals} & {candidate.key for candidate in chosen}:
            chosen += rivals[:1]
    return chosen
