"""A matrix that holds the tokens that the target finds likely after each pair of tokens. It is filled while a text is
written."""

from collections.abc import Iterable, Sequence

import numpy as np
from torch import Tensor

from engine.core.memory import Store

MOST_BYTES = 2_000_000
"""The most bytes of one matrix. When all rows are taken, a new pair of tokens takes over the row that was taken
first."""

ENTRY_BYTES = 160
"""The memory that one pair takes besides its row: entries in two dictionaries."""

LEAST_ROWS = 256
"""The least number of rows of a matrix; one pass never needs as many."""

Pair = tuple[int, int]
"""Two consecutive tokens of a text."""


class TrigramMatrix(Store):
    """Maps a pair of tokens to the likeliest tokens after it and their probabilities, the likeliest first."""

    def __init__(self, vocabulary: int, width: int, most_bytes: int = MOST_BYTES) -> None:
        """width: the number of tokens kept for each pair. most_bytes: bounds the number of rows, which is never below
        LEAST_ROWS."""
        self.width = min(width, vocabulary)
        self.row_bytes = self.width * (4 + 4)
        rows = max(LEAST_ROWS, most_bytes // (self.row_bytes + ENTRY_BYTES))
        self.rows = min(rows, vocabulary * vocabulary)
        self._tokens = np.zeros((self.rows, self.width), np.int32)
        self._chances = np.zeros((self.rows, self.width), np.float32)
        self._row_of: dict[int, int] = {}
        self._pair_of: dict[int, int] = {}
        self._vocabulary = vocabulary
        self._oldest = 0

    @property
    def filled(self) -> int:
        """The number of pairs that have a row."""
        return len(self._row_of)

    @property
    def nbytes(self) -> int:
        return self._tokens.nbytes + self._chances.nbytes + self.filled * ENTRY_BYTES

    def row(self, pair: Pair) -> list[tuple[int, float]]:
        """Return (token, probability) for the likeliest tokens after this pair, the likeliest first; empty if the pair
        has no row."""
        place = self._row_of.get(self._key(pair))
        if place is None:
            return []
        entries = zip(self._tokens[place].tolist(), self._chances[place].tolist(), strict=True)
        return [(token, chance) for token, chance in entries if chance > 0]

    def write(self, pairs: Sequence[Pair], logits: Tensor, share: float) -> None:
        """Blend the target's new probabilities into the pairs' rows, with the weight ``share``.

        logits: [R, V], row i after pair i. A row of NaN is skipped: the target did not read that pair.
        """
        p = logits.float().softmax(-1)
        best = p.topk(self.width)
        fresh = zip(pairs, best.indices.tolist(), best.values.tolist(), strict=True)
        for pair, tokens, chances in fresh:
            if chances[0] == chances[0]:
                self._blend(pair, list(zip(tokens, chances, strict=True)), share)

    def count(self, tokens: Sequence[int]) -> None:
        """Fill rows from a text: a pair of tokens that has no row yet gets one, with the relative frequencies of the
        tokens that follow this pair in ``tokens``."""
        followers: dict[Pair, dict[int, int]] = {}
        for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
            after = followers.setdefault((first, second), {})
            after[third] = after.get(third, 0) + 1
        for pair, after in followers.items():
            if self._key(pair) not in self._row_of:
                total = sum(after.values())
                self._put(pair, [(token, times / total) for token, times in after.items()])

    def _blend(self, pair: Pair, now: Iterable[tuple[int, float]], share: float) -> None:
        before = dict(self.row(pair))
        kept = 1.0 - share if before else 0.0
        chances = {token: kept * chance for token, chance in before.items()}
        for token, chance in now:
            chances[token] = chances.get(token, 0.0) + (1.0 - kept) * chance
        self._put(pair, chances.items())

    def _put(self, pair: Pair, chances: Iterable[tuple[int, float]]) -> None:
        best = sorted(chances, key=lambda pair: -pair[1])[: self.width]
        place = self._place(pair)
        self._chances[place] = 0.0
        self._tokens[place, : len(best)] = [token for token, _ in best]
        self._chances[place, : len(best)] = [chance for _, chance in best]

    def _place(self, pair: Pair) -> int:
        """Return the index of the pair's row. If the pair has no row, give it a free one, or else the one that was
        taken longest ago."""
        key = self._key(pair)
        place = self._row_of.get(key)
        if place is None:
            place = self._oldest
            self._oldest = (place + 1) % self.rows
            former = self._pair_of.get(place)
            if former is not None:
                del self._row_of[former]
            self._row_of[key], self._pair_of[place] = place, key
        return place

    def _key(self, pair: Pair) -> int:
        return pair[0] * self._vocabulary + pair[1]
