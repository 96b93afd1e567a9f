"""A small causal language model by counting: it uses n-grams of a corpus and of the text so far.

The probability of a token is the share with which it followed the n-gram before it, smoothed by its probability after
the next shorter n-gram (Dirichlet smoothing). The shortest level gives every token the same probability. Counts of the
corpus are looked up in its suffix array, so nothing is built for the corpus; counts of the text are updated as the text
grows.
"""

import math
from collections import Counter
from collections.abc import Sequence

from engine.methods.shared.datastore_part import Datastore

SMOOTHING = 2.0
"""The probability after the shorter n-gram counts as much as this many occurrences."""
MOST_REMEMBERED = 50_000  # counts of the corpus that are remembered

Gram = tuple[int, ...]


class CausalProxy:
    """The n-gram model of one text. order: tokens of the longest n-gram. vocabulary: the number of tokens that
    exist."""

    def __init__(self, order: int, vocabulary: int, corpus: Datastore) -> None:
        self._order, self._vocabulary, self._corpus = order, vocabulary, corpus
        self._own: Counter[Gram] = Counter()
        self._read = 0
        self._known: dict[Gram, int] = {}

    def read(self, text: Sequence[int]) -> None:
        """Count the n-grams that end in the tokens added since the last call. text: the whole text."""
        for end in range(self._read + 1, len(text) + 1):
            for length in range(min(self._order, end) + 1):
                self._own[tuple(text[end - length : end])] += 1
        self._read = len(text)

    def log_p(self, before: Sequence[int], token: int) -> float:
        """Return the log-probability of a token after ``before``, of which only the last ``order`` - 1 tokens
        matter."""
        p = 1 / self._vocabulary
        for length in range(min(self._order - 1, len(before)) + 1):
            gram = tuple(before[len(before) - length :])
            total = self._count(gram)
            if not total:
                break
            p = (self._count((*gram, token)) + SMOOTHING * p) / (total + SMOOTHING)
        return math.log(p)

    def _count(self, gram: Gram) -> int:
        return self._own[gram] + self._in_corpus(gram)

    def _in_corpus(self, gram: Gram) -> int:
        count = self._known.get(gram)
        if count is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            match = self._corpus.find(gram)
            count = self._known[gram] = 0 if match is None else match.last - match.first
        return count
