"""Beginnings of texts that the target has looked at, and how likely it is that a valid text follows each."""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

from engine.core.memory import Store

Prefix = tuple[int, ...]
MOST_BYTES = 4_000_000
"""What is seen beyond is not learned: an unknown prefix counts as one that a valid text is sure to follow."""
ENTRY, TOKEN = 300, 8  # bytes of a prefix, and of each of its tokens


class Prefixes(Store):
    """Prefix -> its token's probability behind the prefix before, and the sum of the probabilities of all tokens that may
    follow. Both are the target's own, at the temperature of the text and without a mask."""

    def __init__(self) -> None:
        self._seen: dict[Prefix, tuple[float, float]] = {}
        self._nbytes = 0
        self.texts = 0

    @property
    def nbytes(self) -> int:
        return self._nbytes

    def __len__(self) -> int:
        return len(self._seen)

    def see(self, prefix: Prefix, p: float, mass: float) -> None:
        if prefix not in self._seen:
            size = ENTRY + TOKEN * len(prefix)
            if self._nbytes + size > MOST_BYTES:
                return
            self._nbytes += size
        self._seen[prefix] = (p, mass)

    def bounds(self) -> dict[Prefix, float]:
        """Prefix -> an upper bound of the probability that a valid text follows it (Park et al.'s c): the sum of p times the
        bound over the tokens that may follow, where the bound of an unknown prefix is 1."""
        found: dict[Prefix, float] = {}
        lost: defaultdict[Prefix, float] = defaultdict(float)
        for prefix in sorted(self._seen, key=len, reverse=True):
            p, mass = self._seen[prefix]
            found[prefix] = min(1.0, max(0.0, mass - lost[prefix]))
            lost[prefix[:-1]] += p * (1 - found[prefix])
        return found


class Weights:
    """The bounds as they are when a text begins. The bounds stay fixed until the text ends, so that drafts cannot
    change the law from which the text is drawn."""

    def __init__(self, bounds: dict[Prefix, float]) -> None:
        self.root = bounds.get((), 1.0)
        self._below: defaultdict[Prefix, dict[int, float]] = defaultdict(dict)
        for prefix, bound in bounds.items():
            if prefix and bound < 1:
                self._below[prefix[:-1]][prefix[-1]] = bound

    def below(self, prefix: Prefix) -> dict[int, float]:
        """Token -> its bound, for the tokens behind a prefix whose bound is below 1."""
        return self._below.get(prefix, {})

    def weighed(self, p: Tensor, prefixes: Iterable[Prefix]) -> Tensor:
        """p [R, V] after each prefix, times the bounds and scaled to sum to 1; float64. A row without anything left stays."""
        p = p.double()
        for row, prefix in enumerate(prefixes):
            below = self.below(prefix)
            if below:
                law = p[row].clone()
                tokens = list(below)
                law[tokens] *= torch.tensor([*below.values()], dtype=law.dtype, device=law.device)
                if (whole := law.sum()) > 0:
                    p[row] = law / whole
        return p
