"""Prefixes of texts that the target has read, and for each an upper bound on the probability that a text with this
prefix becomes valid."""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

from engine.core.memory import Store

Prefix = tuple[int, ...]
MOST_BYTES = 4_000_000
"""The most bytes of one store. Prefixes that do not fit are not stored; a prefix that is not stored has the bound 1, as
if a valid text were sure to follow it."""
ENTRY, TOKEN = 300, 8  # bytes of a stored prefix, and of each of its tokens


class Prefixes(Store):
    """Stores two numbers for each prefix: the probability of its last token after the tokens before it, and the total
    probability of all tokens that the constraint allows next. Both are the target's own, at the temperature of the text
    and without a mask."""

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
        """Return, for each prefix, an upper bound on the probability that a text with this prefix becomes valid (Park
        et al.'s c). The bound is the sum of p(v) * bound(prefix + v) over the tokens v that the constraint allows next;
        a prefix that is not stored has the bound 1."""
        bounds: dict[Prefix, float] = {}
        lost: defaultdict[Prefix, float] = defaultdict(float)
        for prefix in sorted(self._seen, key=len, reverse=True):
            p, mass = self._seen[prefix]
            bounds[prefix] = min(1.0, max(0.0, mass - lost[prefix]))
            lost[prefix[:-1]] += p * (1 - bounds[prefix])
        return bounds


class Weights:
    """The bounds as they were when a text began. They stay fixed until the text ends. Otherwise the drafts would change
    the law from which the text is drawn."""

    def __init__(self, bounds: dict[Prefix, float]) -> None:
        self.root = bounds.get((), 1.0)
        self._below: defaultdict[Prefix, dict[int, float]] = defaultdict(dict)
        for prefix, bound in bounds.items():
            if prefix and bound < 1:
                self._below[prefix[:-1]][prefix[-1]] = bound

    def below(self, prefix: Prefix) -> dict[int, float]:
        """Return token -> bound of the prefix that this prefix and the token make, for those tokens with which the
        bound is below 1."""
        return self._below.get(prefix, {})

    def weighed(self, p: Tensor, prefixes: Iterable[Prefix]) -> Tensor:
        """Multiply the probability of each token by a bound, and scale each row to sum to 1; float64. p: [R, V]; row i
        is the law after the i-th of the R prefixes. The bound of a token in row i is the bound of the prefix that
        prefix i and the token make. A row that would become 0 everywhere stays as it is."""
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
