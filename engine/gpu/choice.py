"""What is made of the logits of a block on the device, as part of the pass that computes them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.kernels.truncation import truncated
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
    def __call__(self, logits: Tensor, drawn: Tensor) -> tuple:
        """logits: [length, V]. drawn: float64 [length], a number a row; uniforms where one is drawn.

        What is returned can be cloned."""


class OneEach(Choice):
    """A token for each row: int32 [length], and q [length, V] if it is drawn from that, else None."""

    def __call__(self, logits, drawn):
        if self.greedy:
            return display_distribution(logits, self.sampling).argmax(-1).to(torch.int32), None
        q = truncated(logits, self.sampling)
        return pick(q, drawn).to(torch.int32), q
