"""Choosing tokens from the logits of a block on the device, in the pass that computes the logits."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.sampling import Sampling, display_distribution, pick
from engine.fast.kernels.truncation import truncated


@dataclass(frozen=True)
class Choice(ABC):
    """A choice for ``length`` rows. sampling: with seed 0, because a choice is part of a pass's key."""

    length: int
    sampling: Sampling

    @property
    def greedy(self) -> bool:
        return self.sampling.greedy

    @abstractmethod
    def __call__(self, logits: Tensor, drawn: Tensor) -> tuple:
        """logits: [length, V]. drawn: float64 [length], one number per row: uniforms if tokens are drawn.

        Every part of the result is None or has ``clone``."""


class OneEach(Choice):
    """A token for each row: int32 [length], and the q [length, V] it was drawn from, or None."""

    def __call__(self, logits, drawn):
        if self.greedy:
            return display_distribution(logits, self.sampling).argmax(-1).to(torch.int32), None
        q = truncated(logits, self.sampling)
        return pick(q, drawn).to(torch.int32), q
