"""Densities on the plane: mixtures of Gaussians, and walks in which the law of the next point depends on the last
one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mixture:
    """A mixture of K Gaussians, all float64. weights: [K], with sum 1. means: [K, 2]. spreads: [K, 2], standard
    deviations along the axes."""

    weights: Tensor
    means: Tensor
    spreads: Tensor

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """``count`` points drawn from the mixture, [count, 2]."""
        which = torch.multinomial(self.weights, count, True, generator=generator)
        noise = torch.randn(count, 2, generator=generator, dtype=torch.float64)
        return self.means[which] + self.spreads[which] * noise

    def density(self, points: Tensor) -> Tensor:
        """The density at points [..., 2], as [...]."""
        gaps = (points[..., None, :] - self.means) / self.spreads
        peaks = self.weights / (2 * math.pi * self.spreads.prod(-1))
        return (peaks * (-0.5 * gaps.square().sum(-1)).exp()).sum(-1)

    def shifted(self, by: Tensor) -> Mixture:
        """A copy of the mixture with its means moved by ``by`` [2]."""
        return replace(self, means=self.means + by)


def mixture(*parts: tuple[float, float, float, float, float]) -> Mixture:
    """A mixture of Gaussians. parts: (weight, x, y, spread in x, spread in y) of each."""
    rows = torch.tensor(parts, dtype=torch.float64)
    return Mixture(rows[:, 0] / rows[:, 0].sum(), rows[:, 1:3], rows[:, 3:])


@dataclass(frozen=True)
class Walk:
    """A continuous autoregressive model: the next point is drawn from ``cloud``, shifted by ``memory`` times the last
    point."""

    cloud: Mixture
    memory: float = 0.6

    def after(self, last: Tensor) -> Mixture:
        """The law of the point after ``last`` [2]."""
        return self.cloud.shifted(self.memory * last)


TARGET = mixture((3, -1.5, 0.6, 0.45, 0.7), (3, 1.3, 1.0, 0.6, 0.35), (2, 0.2, -1.3, 0.8, 0.4))
"""The target of the figures: a mixture of three hills."""

DRAFT = mixture((1, -1.1, 0.5, 0.9, 0.9), (1, 1.0, 0.2, 1.0, 1.1))
"""The draft model of the figures: a mixture of two wide hills."""


def overlap(p: Mixture, q: Mixture, reach: float = 8.0, cells: int = 640) -> float:
    """The integral of min(p, q) over a square around the origin that reaches ``reach`` to each side, by the midpoint
    rule."""
    step = 2 * reach / cells
    axis = torch.arange(cells, dtype=torch.float64) * step + step / 2 - reach
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1)
    return float(torch.minimum(p.density(grid), q.density(grid)).sum() * step * step)
