"""What is made of the logits of a block on the device, as part of the pass that computes them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.sampling import Sampling, display_distribution, pick


@dataclass(frozen=True)
class Choice(ABC):
    """For ``length`` rows; sampling: with seed 0, for a pass is known by its choice."""

    length: int
    sampling: Sampling

    @property
    def greedy(self) -> bool:
        return self.sampling.greedy

    @abstractmethod
    def __call__(self, logits: Tensor, drawn: Tensor) -> tuple[Tensor | None, ...]:
        """logits: [length, V]. drawn: float64 [length], uniforms; not looked at if nothing is drawn."""


class OneEach(Choice):
    """A token for each row: int32 [length], and q [length, V] if it is drawn from that, else None."""

    def __call__(self, logits, drawn):
        q = display_distribution(logits, self.sampling)
        if self.greedy:
            return q.argmax(-1).to(torch.int32), None
        return pick(q, drawn).to(torch.int32), q


@dataclass(frozen=True)
class Likeliest(Choice):
    """The ``count`` likeliest tokens of each row, in one piece that crosses in one copy: float64
    [2, length, count], probabilities and tokens."""

    count: int

    def __call__(self, logits, drawn):
        values, tokens = display_distribution(logits, self.sampling).topk(self.count, dim=-1)
        return (torch.stack([values.double(), tokens.double()]),)
