"""Choosing tokens from the logits of a block on the device, in the pass that computes the logits."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.sampling import Sampling, display_distribution, pick
from engine.fast.kernels.truncation import truncated


@dataclass(frozen=True)
class OneEach:
    """A token for each of ``length`` rows. sampling: with seed 0, because a choice is part of a pass's key."""

    length: int
    sampling: Sampling

    @property
    def greedy(self) -> bool:
        return self.sampling.greedy

    def __call__(self, logits: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor | None]:
        """logits: [length, V]. drawn: float64 [length], a uniform for each row, unused at temperature 0. Returns the tokens, int32
        [length], and the q [length, V] they were drawn from, or None."""
        if self.greedy:
            return display_distribution(logits, self.sampling).argmax(-1).to(torch.int32), None
        q = truncated(logits, self.sampling)
        return pick(q, drawn).to(torch.int32), q
