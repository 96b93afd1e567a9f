"""How likely the next drafted token is to be kept, learned while a text is written, and told before the token is drawn.

The online estimator of vLLM's adaptive verification (0.32, 2026): the log-odds of being kept are w f + b_k, where f is the
log-odds of the likeliest token under q and k the token's place in the draft. The slope w is shared by all places, and each has
its own b_k. Now and then all take one step of Newton's method on the outcomes since the last one, shortened where these were few.
f belongs to q, not to the token that is drawn. So a draft that ends where this chance is small ends for what was known
before the draw, and q stays the true law of every drafted token. To judge the drawn token and leave it out would not do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np
from torch import Tensor

SLOPE, INTERCEPT = 0.5, -0.2
RIDGE, DAMPING = 1e-3, 50.0
"""As in vLLM: the penalty on the squares, and the number of outcomes at which a step has half its length."""
STEPS = 10
"""Steps between two of Newton's; vLLM, whose steps hold many texts, takes 100."""
MOST = 40.0  # log-odds


def log_odds(q: Tensor) -> float:
    """The log-odds of the likeliest token under q [V]."""
    best = float(q.max())
    least = exp(-MOST)
    return log(max(best, least) / max(1 - best, least))


class AcceptanceEstimator:
    """places: tokens of a draft, at most."""

    def __init__(self, places: int) -> None:
        self._slope, self._intercepts = SLOPE, np.full(places, INTERCEPT)
        self._seen: list[tuple[int, float, bool]] = []
        self._steps = 0

    def chance(self, odds: float, place: int) -> float:
        """The chance that the token at a place (0 is right behind the root) is kept. odds: log-odds of the likeliest token there."""
        return float(_sigmoid(self._slope * odds + self._intercepts[place]))

    def see(self, odds: Sequence[float], accepted: int) -> None:
        """Learn from a step. odds: log-odds at the drafted tokens. accepted: how many tokens were kept; tokens behind the first
        refusal were not judged."""
        judged = odds[: accepted + 1]
        self._seen += [(place, one, place < accepted) for place, one in enumerate(judged)]
        self._steps += 1
        if self._steps % STEPS == 0:
            self._refit()
            self._seen = []

    def _refit(self) -> None:
        if not self._seen:
            return
        place, odds, kept = (np.array(each) for each in zip(*self._seen, strict=True))
        chance = _sigmoid(self._slope * odds + self._intercepts[place])
        weight, off = chance * (1 - chance), kept - chance
        size = len(self._intercepts)

        def by_place(values: np.ndarray) -> np.ndarray:
            return np.bincount(place, values, size)

        # the information matrix has a row for the slope and is diagonal in the intercepts, which are eliminated
        shared, own = by_place(weight * odds), by_place(weight) + RIDGE
        score, counts = by_place(off), by_place(np.ones(len(off)))
        known = (weight * odds**2).sum() + RIDGE - (shared**2 / own).sum()
        slope = ((off * odds).sum() - (shared * score / own).sum()) / known
        slope *= len(off) / (len(off) + DAMPING)
        slope = max(slope, -self._slope)  # surer drafts are never less likely to be kept
        self._slope += slope
        self._intercepts += (score - shared * slope) / own * counts / (counts + DAMPING)


def _sigmoid(odds):
    return 1 / (1 + np.exp(-np.clip(odds, -MOST, MOST)))
