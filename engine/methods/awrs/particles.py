"""Texts that stand for a law by their weights, and their resampling (sequential Monte Carlo)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.errors import UserError


@dataclass
class Particle:
    """A text and its weight. log_weight: minus infinity where the text cannot go on."""

    path: tuple[int, ...] = ()
    log_weight: float = 0.0

    def weigh(self, factor: float) -> None:
        self.log_weight += math.log(factor) if factor > 0 else -math.inf

    @property
    def dead(self) -> bool:
        return self.log_weight == -math.inf


def shares_of(particles: Sequence[Particle]) -> Tensor:
    """[P] float64, the weights scaled to sum to 1. Raises UserError if all are 0."""
    logs = torch.tensor([one.log_weight for one in particles], dtype=torch.float64)
    if bool(logs.isinf().all()):
        raise UserError(
            f"All {len(logs)} texts died: the constraint left none of them a token that the target could draw."
        )
    return logs.softmax(0)


def log_mean(particles: Sequence[Particle]) -> float:
    """The log of the mean weight, whose exponential estimates the probability of a valid text without bias."""
    logs = torch.tensor([one.log_weight for one in particles], dtype=torch.float64)
    return float(logs.logsumexp(0)) - math.log(len(logs))


def effective(shares: Tensor) -> float:
    """The effective number of texts."""
    return 1 / float((shares**2).sum())


def resampled(particles: Sequence[Particle], choose: Callable[[Tensor], int]) -> list[Particle]:
    """The same number of texts, all with the mean weight; each text occurs on average as often as its weight says
    (systematic resampling).

    choose: an index from weights of any sum. Systematic resampling lays a comb with a random start over the shares; the starts that
    choose the same texts are one stretch, and a stretch is chosen by its length."""
    shares, count = shares_of(particles), len(particles)
    rising, mean = shares.cumsum(0), log_mean(particles)
    ends = torch.cat([(rising * count) % 1, torch.tensor([0.0, 1.0])]).sort().values
    stretch = choose(ends.diff())
    start = (ends[stretch] + ends[stretch + 1]) / 2
    teeth = (start + torch.arange(count)) / count
    places = torch.searchsorted(rising, teeth, right=True).clamp(max=count - 1)
    return [Particle(particles[place].path, mean) for place in places.tolist()]
