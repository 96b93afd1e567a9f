"""A small causal language model by counting: n-grams of the text so far, with Witten and Bell's smoothing.

An n-gram that was never seen falls back to the shorter one, down to one chance for every token. Reading a token takes a
few dictionary entries, so it learns as the text grows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

Gram = tuple[int, ...]


class CausalProxy:
    """order: tokens of the longest n-gram. vocabulary: how many tokens there are."""

    def __init__(self, order: int, vocabulary: int) -> None:
        self._order, self._vocabulary = order, vocabulary
        self._followers: dict[Gram, Counter[int]] = {}
        self._totals: Counter[Gram] = Counter()
        self._text: list[int] = []

    def read(self, text: Sequence[int]) -> None:
        """Learn what has been added to the text since the last time. text: all of it."""
        for place in range(len(self._text), len(text)):
            for length in range(min(self._order - 1, place) + 1):
                before = tuple(text[place - length : place])
                self._followers.setdefault(before, Counter())[text[place]] += 1
                self._totals[before] += 1
        self._text = list(text)

    def log_p(self, before: Sequence[int], token: int) -> float:
        """The logarithm of the chance of a token after these tokens, of which the last few count."""
        p = 1 / self._vocabulary
        for length in range(min(self._order - 1, len(before)) + 1):
            gram = tuple(before[len(before) - length :])
            followers = self._followers.get(gram)
            if followers is None:
                break
            kinds, total = len(followers), self._totals[gram]
            p = (followers[token] + kinds * p) / (total + kinds)
        return math.log(p)
