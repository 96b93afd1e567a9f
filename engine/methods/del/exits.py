"""After which layer a model that drafts with its own first layers should exit, learned while it verifies.

DEL (Entezari Zarch et al., 2025): every layer's early exit has a *shadow token* at each place that the
target has verified: the token that the exit would have drafted there. The share of shadow tokens that equal the
target's own, older positions counting less, is the acceptance rate a of that exit. With d tokens drafted by the
first l of L layers, a step writes (1 - a^(d+1)) / (1 - a) tokens on average and runs L + d l layers one after
another. The ratio of the two is *tokens per layer*; the exit and the length with the largest ratio are taken.

Beyond the paper: the head runs once for each drafted token and once to verify. Where it costs as much as h layers, a
step costs L + h + d (l + h), and a step of plain decoding L + h.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Plan:
    """Draft ``length`` tokens with the first ``layer`` layers. per_layer: expected tokens per layer."""

    layer: int
    length: int
    per_layer: float


class Exits:
    """The exits after 1 to L - 1 layers; row i of the counts is for the exit after i + 1 layers."""

    def __init__(self, layers: int, decay: float, head: float = 0.0) -> None:
        """layers: L, at least 2. decay: the factor on earlier counts at each step. head: h, the cost of the head in
        layers; 0 leaves it out, as the paper does."""
        self._layers, self._decay, self._head = layers, decay, head
        self._counts = torch.zeros(layers - 1, 2, dtype=torch.float64)  # agreed, disagreed
        self._confidences = torch.zeros(layers - 1, 2, dtype=torch.float64)  # sums, likewise
        self._plans: dict[tuple[int, int], Plan] = {}  # by the bounds on the length

    def learn(self, shadows: Tensor, confidences: Tensor, chosen: Tensor) -> None:
        """shadows, confidences [L - 1, R]: each exit's token at R verified places, and its probability.
        chosen: the target's own tokens there, [R]."""
        agreed = (shadows == chosen).double()
        split = torch.stack([agreed, 1 - agreed])
        sums = torch.stack([split.sum(-1), (split * confidences).sum(-1)])  # [2, 2, L - 1]
        self._counts = self._decay * self._counts + sums[0].T
        self._confidences = self._decay * self._confidences + sums[1].T
        self._plans = {}

    def snapshot(self) -> Exits:
        """The exits as they are now; ``learn`` leaves it alone."""
        return copy(self)

    @property
    def acceptance(self) -> Tensor:
        """[L - 1], the share of shadow tokens that the target agreed with; 0 before there are any."""
        return self._counts[:, 0] / self._counts.sum(-1).clamp(min=1e-9)

    def threshold(self, layer: int) -> float:
        """Half-way between the mean confidence of tokens that the target agreed with and that of the
        others; 0 while one of the two kinds has no tokens."""
        counts, sums = self._counts[layer - 1], self._confidences[layer - 1]
        return float((sums / counts).mean()) if bool((counts > 0).all()) else 0.0

    def per_layer(self, most: int) -> Tensor:
        """[L - 1, most + 1]: tokens per layer of each exit with 0 to ``most`` drafted tokens."""
        lengths = torch.arange(most + 1, dtype=torch.float64)
        written = (self.acceptance[:, None] ** lengths).cumsum(-1)
        exits = torch.arange(1, self._layers, dtype=torch.float64)
        drafting = (exits + self._head)[:, None] * lengths
        return written / (self._layers + self._head + drafting)

    def best(self, most: int, least: int = 0) -> Plan:
        """The plan with most tokens per layer among those of ``least`` to ``most`` drafted tokens; in
        a tie, the one with the lower exit and the shorter draft."""
        if (most, least) not in self._plans:
            values = self.per_layer(most)
            values[:, :least] = -1
            row, length = divmod(int(values.argmax()), most + 1)
            self._plans[most, least] = Plan(row + 1, length, float(values[row, length]))
        return self._plans[most, least]
