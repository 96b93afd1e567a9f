"""Learns, from the text that it writes, which sublayers a self-drafting target leaves out.

SWIFT (Xia et al., 2024): a skip set is scored by its *matchness*, the share of recent tokens that the target without
these sublayers would have written itself. The search begins with sublayers at equal distances and goes on at random.
Now and then a Gaussian process over skip sets proposes the set with the largest expected improvement.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.memory import Store
from engine.methods.swift.ledger import Ledger
from engine.model.layers import ATTENTION, MLP

Sublayer = tuple[int, str]
RANDOM_TRIALS = 3  # after this many random trials the Gaussian process has enough data
POOL = 48  # random skip sets among which the process chooses
RECENT = 96  # latest trials that the process uses: its cost grows with the cube of their number
NOISE = 0.05  # variance of a matchness, measured on few tokens, relative to the kernel


def candidates(layers: int) -> list[Sublayer]:
    """Return the sublayers that may be skipped: all but those of the first and the last layer."""
    return [(layer, part) for layer in range(1, layers - 1) for part in (ATTENTION, MLP)]


@dataclass
class SkipSearch(Store):
    """The skip sets tried so far, in this text and in earlier ones of the same visitor.

    sublayers: the sublayers that may be skipped. size: how many of them are skipped. ledger: the cost of the trials.
    """

    sublayers: Sequence[Sublayer]
    size: int
    tried: list[Tensor] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    _best: tuple[frozenset[Sublayer], float] = field(init=False)

    def __post_init__(self) -> None:
        self._best = self.named(self._even()), 0.0

    @property
    def best(self) -> tuple[frozenset[Sublayer], float]:
        """The skip set with the highest matchness, and this matchness. Before any trial, the initial set of sublayers
        at equal distances, and 0."""
        return self._best

    @property
    def nbytes(self) -> int:
        return 8 * (len(self.sublayers) + 1) * len(self.scores)

    def proposal(self, uniforms: Callable[[int], Tensor], interval: int = 1) -> Tensor:
        """Return the next skip set to try: float [S] over the S sublayers, 1 where a sublayer is skipped.

        uniforms(count): returns ``count`` uniform numbers on [0, 1). interval: the Gaussian process proposes the last
        of every ``interval`` trials; the other trials are random.
        """
        trials = len(self.scores)
        if not trials:
            return self._even()
        if trials <= RANDOM_TRIALS or (trials + 1) % interval:
            return self._random(uniforms)
        pool = torch.stack([self._random(uniforms) for _ in range(POOL)])
        return pool[int(self._expected_improvement(pool).argmax())]

    def learn(self, skipped: Tensor, score: float) -> None:
        if not self.scores or score > self._best[1]:
            self._best = self.named(skipped), score
        self.tried.append(skipped)
        self.scores.append(score)

    def named(self, skipped: Tensor) -> frozenset[Sublayer]:
        return frozenset(self.sublayers[place] for place in skipped.nonzero().flatten().tolist())

    def _even(self) -> Tensor:
        places = torch.arange(self.size) * len(self.sublayers) // max(1, self.size)
        return torch.zeros(len(self.sublayers), dtype=torch.float64).index_fill_(0, places, 1.0)

    def _random(self, uniforms: Callable[[int], Tensor]) -> Tensor:
        places = uniforms(len(self.sublayers)).argsort()[: self.size]
        return torch.zeros(len(self.sublayers), dtype=torch.float64).index_fill_(0, places, 1.0)

    def _expected_improvement(self, pool: Tensor) -> Tensor:
        """Return the expected improvement of each of P skip sets over S sublayers: [P, S] -> [P]. The kernel of the
        Gaussian process falls with the number of sublayers in which two sets differ."""
        tried = torch.stack(self.tried[-RECENT:])
        scores = torch.tensor(self.scores[-RECENT:], dtype=torch.float64)
        mean = scores.mean()
        spread = scores.std(correction=0).clamp(min=0.05)
        within = _kernel(tried, tried) + NOISE * torch.eye(len(tried), dtype=torch.float64)
        across = _kernel(pool, tried)
        weights = torch.linalg.solve(within, across.T)
        guess = mean + weights.T @ (scores - mean)
        variance = (1 - (across * weights.T).sum(-1)).clamp(min=1e-9)
        deviation = spread * variance.sqrt()
        gain = guess - max(self.scores)
        z = gain / deviation
        density = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return gain * torch.special.ndtr(z) + deviation * density


def _kernel(one: Tensor, other: Tensor) -> Tensor:
    """Return the similarities [A, B] of A skip sets and B others. A skip set is a row of S numbers, one for each
    sublayer. The similarity is 1 for equal sets, less for each sublayer in which they differ."""
    apart = torch.cdist(one, other, p=1)
    return torch.exp(-apart / 4)
