"""Estimates the chance that the next drafted token will be accepted, before this token is drawn; learns while a text is
written.

The online estimator of vLLM's adaptive verification (0.32, 2026): the log-odds of acceptance are w f + b_k, where f is
the log-odds of the likeliest token under q and k is the token's position in the draft. All positions share the slope w,
and each position has its own intercept b_k. After every ``STEPS`` decoding steps, w and all b_k are updated by one step
of Newton's method on the outcomes since the last update. With few outcomes this update is smaller. Because f depends on
q and not on the drawn token, a draft can be ended before the next token is drawn, and q stays the true law of every
drafted token. If a token were dropped after it was drawn, q would no longer be the law of the tokens that stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np
from torch import Tensor

SLOPE, INTERCEPT = 0.5, -0.2
RIDGE, DAMPING = 1e-3, 50.0
"""vLLM's values. RIDGE: the penalty on squared parameters. DAMPING: the number of outcomes at which an update by
Newton's method is half as large as without damping."""
STEPS = 10
"""The number of decoding steps between two updates by Newton's method. vLLM takes 100, where each decoding step covers
many texts; here a step covers one text."""
MOST = 40.0  # log-odds


def log_odds(q: Tensor) -> float:
    """The log-odds of the likeliest token under q [V]."""
    best = float(q.max())
    least = exp(-MOST)
    return log(max(best, least) / max(1 - best, least))


class AcceptanceEstimator:
    """The estimator for one text. places: the largest number of tokens in a draft."""

    def __init__(self, places: int) -> None:
        self._slope, self._intercepts = SLOPE, np.full(places, INTERCEPT)
        self._seen: list[tuple[int, float, bool]] = []
        self._steps = 0

    def chance(self, odds: float, place: int) -> float:
        """Return the chance that the drafted token at position ``place`` will be accepted. odds: the log-odds of the
        likeliest token at this position. place: 0 for the first drafted token."""
        return float(_sigmoid(self._slope * odds + self._intercepts[place]))

    def see(self, odds: Sequence[float], accepted: int) -> None:
        """Learn from a decoding step. odds: for each drafted token, the log-odds of the likeliest token at its
        position. accepted: how many drafted tokens were accepted; tokens after the first rejected token were not
        judged."""
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
