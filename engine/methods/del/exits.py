"""Learns, while a target verifies, after which of its layers it should exit when it drafts with its own first layers.

DEL (Entezari Zarch et al., 2025): at each position that the target has verified, every layer's early exit has a *shadow
token*: the token that the exit would have drafted there. The acceptance rate a of an exit is the share of its shadow
tokens that equal the target's own tokens; older positions count less. With d tokens drafted by the first l of L layers,
a step writes (1 - a^(d+1)) / (1 - a) tokens on average and runs L + d l layers one after another. The ratio of these
two is *tokens per layer*; the exit and the length with the largest ratio are chosen.

Beyond the paper: the head runs once for each drafted token and once to verify. If the head costs as much as h layers, a
step costs L + h + d (l + h), and a step of plain decoding L + h.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Plan:
    """The plan of a step: draft ``length`` tokens with the first ``layer`` layers. per_layer: the expected tokens per
    layer."""

    layer: int
    length: int
    per_layer: float


class Exits:
    """The exits after 1 to L - 1 layers, with what was learned about them. Tensors with L - 1 rows have one row for
    each exit; row i belongs to the exit after i + 1 layers."""

    def __init__(self, layers: int, decay: float, head: float = 0.0) -> None:
        """layers: L, at least 2. decay: the factor by which the counts of earlier positions are multiplied at each
        step. head: h, the cost of the head in layers; 0 leaves the head out, as the paper does."""
        self._layers, self._decay, self._head = layers, decay, head
        self._counts = torch.zeros(layers - 1, 2, dtype=torch.float64)  # agreed, disagreed
        self._confidences = torch.zeros(layers - 1, 2, dtype=torch.float64)  # sums for the same two
        self._plans: dict[tuple[int, int], Plan] = {}  # by the most and the least length

    def learn(self, shadows: Tensor, confidences: Tensor, chosen: Tensor) -> None:
        """Record R verified positions. shadows, confidences: [L - 1, R], the token that each exit would have drafted
        there, and its probability. chosen: [R], the target's own tokens there."""
        agreed = (shadows == chosen).double()
        split = torch.stack([agreed, 1 - agreed])
        sums = torch.stack([split.sum(-1), (split * confidences).sum(-1)])  # [2, 2, L - 1]
        self._counts = self._decay * self._counts + sums[0].T
        self._confidences = self._decay * self._confidences + sums[1].T
        self._plans = {}

    def snapshot(self) -> Exits:
        """Return a copy of the exits as they are now, which ``learn`` does not change."""
        return copy(self)

    @property
    def acceptance(self) -> Tensor:
        """For each exit, the share of its shadow tokens that equal the target's token, [L - 1]; 0 for an exit without
        shadow tokens."""
        return self._counts[:, 0] / self._counts.sum(-1).clamp(min=1e-9)

    def threshold(self, layer: int) -> float:
        """Return a confidence for the exit after this layer. It lies half-way between the mean confidence of the exit's
        shadow tokens that equal the target's token and the mean confidence of those that do not. It is 0 while the exit
        has no shadow token of one of the two kinds."""
        counts, sums = self._counts[layer - 1], self._confidences[layer - 1]
        return float((sums / counts).mean()) if bool((counts > 0).all()) else 0.0

    def per_layer(self, most: int) -> Tensor:
        """Return tokens per layer, [L - 1, most + 1], of each exit with 0 to ``most`` drafted tokens."""
        lengths = torch.arange(most + 1, dtype=torch.float64)
        written = (self.acceptance[:, None] ** lengths).cumsum(-1)
        exits = torch.arange(1, self._layers, dtype=torch.float64)
        drafting = (exits + self._head)[:, None] * lengths
        return written / (self._layers + self._head + drafting)

    def best(self, most: int, least: int = 0) -> Plan:
        """Return the plan with the most tokens per layer among those with ``least`` to ``most`` drafted tokens. In a
        tie, the lower exit wins, then the shorter draft."""
        if (most, least) not in self._plans:
            values = self.per_layer(most)
            values[:, :least] = -1
            row, length = divmod(int(values.argmax()), most + 1)
            self._plans[most, least] = Plan(row + 1, length, float(values[row, length]))
        return self._plans[most, least]
