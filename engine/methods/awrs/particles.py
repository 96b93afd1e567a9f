"""Weighted texts that together stand for a law, and their resampling (sequential Monte Carlo)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.errors import UserError


@dataclass
class Particle:
    """A text and the log of its weight, which is minus infinity if the text cannot go on."""

    path: tuple[int, ...] = ()
    log_weight: float = 0.0

    def weigh(self, factor: float) -> None:
        self.log_weight += math.log(factor) if factor > 0 else -math.inf

    @property
    def dead(self) -> bool:
        return self.log_weight == -math.inf


def shares_of(particles: Sequence[Particle]) -> Tensor:
    """Return the weights scaled to sum to 1, float64 [P]. Raises UserError if all weights are 0."""
    logs = torch.tensor([particle.log_weight for particle in particles], dtype=torch.float64)
    if bool(logs.isinf().all()):
        raise UserError(
            f"All {len(logs)} texts died: the constraint left none of them a token that the target could draw."
        )
    return logs.softmax(0)


def log_mean(particles: Sequence[Particle]) -> float:
    """Return the log of the mean weight. The mean weight estimates the probability of a valid text without bias."""
    logs = torch.tensor([particle.log_weight for particle in particles], dtype=torch.float64)
    return float(logs.logsumexp(0)) - math.log(len(logs))


def effective(shares: Tensor) -> float:
    """Return the effective number of texts, 1 / the sum of squared shares. shares: [P]."""
    return 1 / float((shares**2).sum())


def resampled(particles: Sequence[Particle], choose: Callable[[Tensor], int]) -> list[Particle]:
    """Return as many texts as before, all with the mean weight; on average each text occurs in proportion to its weight
    (systematic resampling).

    Systematic resampling lays the shares end to end on the interval 0 to 1, and evenly spaced points over them; every
    point selects the text in whose share it lies. All points follow from the first one, which is random. Here the
    possible first points are divided into stretches within which the same texts are selected, and one stretch is chosen
    with a probability proportional to its length.

    choose: draws an index in proportion to the weights given to it, which need not sum to 1.
    """
    shares, count = shares_of(particles), len(particles)
    rising, mean = shares.cumsum(0), log_mean(particles)
    ends = torch.cat([(rising * count) % 1, torch.tensor([0.0, 1.0])]).sort().values
    stretch = choose(ends.diff())
    start = (ends[stretch] + ends[stretch + 1]) / 2
    teeth = (start + torch.arange(count)) / count
    places = torch.searchsorted(rising, teeth, right=True).clamp(max=count - 1)
    return [Particle(particles[place].path, mean) for place in places.tolist()]
