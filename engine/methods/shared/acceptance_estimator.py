"""Estimates how likely the next drafted token is to be accepted, before the token is drawn; learns while a text is
written.

The online estimator of vLLM's adaptive verification (0.32, 2026): the log-odds of acceptance are w f + b_k, where f is
the log-odds of the likeliest token under q and k is the token's place in the draft. All places share the slope w, and
each place has its own intercept b_k. Every ``STEPS`` steps w and all b_k take one step of Newton's method on the
outcomes since the last such step; with few outcomes the step is shorter. f depends on q, not on the token that is
drawn. So the decision to end a draft is made before the draw, and q stays the true law of every drafted token. To drop
a token after it was drawn would change q.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np
from torch import Tensor

SLOPE, INTERCEPT = 0.5, -0.2
RIDGE, DAMPING = 1e-3, 50.0
"""vLLM's values: the penalty on squared parameters, and the number of outcomes at which a Newton step has half its
length."""
STEPS = 10
"""Decoding steps between two Newton steps. vLLM takes 100, because each of its decoding steps holds many texts."""
MOST = 40.0  # log-odds


def log_odds(q: Tensor) -> float:
    """The log-odds of the likeliest token under q [V]."""
    best = float(q.max())
    least = exp(-MOST)
    return log(max(best, least) / max(1 - best, least))


class AcceptanceEstimator:
    """The estimator for one text. places: the most tokens of a draft."""

    def __init__(self, places: int) -> None:
        self._slope, self._intercepts = SLOPE, np.full(places, INTERCEPT)
        self._seen: list[tuple[int, float, bool]] = []
        self._steps = 0

    def chance(self, odds: float, place: int) -> float:
        """The chance that the token at a place of the draft is accepted. odds: the log-odds of the likeliest token at
        that place. place: 0 is the token right behind the root."""
        return float(_sigmoid(self._slope * odds + self._intercepts[place]))

    def see(self, odds: Sequence[float], accepted: int) -> None:
        """Learn from a decoding step. odds: the log-odds at each drafted token. accepted: how many tokens were
        accepted; tokens behind the first rejected one were not judged."""
        judged = odds[: accepted + 1]
        self._seen += [(place, value, place < accepted) for place, value in enumerate(judged)]
        self._steps += 1
        if self._steps % STEPS == 0:
            self._refit()
            self._seen = []

    def _refit(self) -> None:
        if not self._seen:
            return
        place, odds, kept = (np.array(column) for column in zip(*self._seen, strict=True))
        chance = _sigmoid(self._slope * odds + self._intercepts[place])
        weight, off = chance * (1 - chance), kept - chance
        size = len(self._intercepts)

        def by_place(values: np.ndarray) -> np.ndarray:
            return np.bincount(place, values, size)

        # the information matrix has a row for the slope and is diagonal in the intercepts, which are eliminated
        shared, own = by_place(weight * odds), by_place(weight) + RIDGE
        score, counts = by_place(off), by_place(np.ones(len(off)))
        information = (weight * odds**2).sum() + RIDGE - (shared**2 / own).sum()
        slope = ((off * odds).sum() - (shared * score / own).sum()) / information
        slope *= len(off) / (len(off) + DAMPING)
        slope = max(slope, -self._slope)  # surer drafts are never less likely to be kept
        self._slope += slope
        self._intercepts += (score - shared * slope) / own * counts / (counts + DAMPING)


def _sigmoid(odds):
    return 1 / (1 + np.exp(-np.clip(odds, -MOST, MOST)))
