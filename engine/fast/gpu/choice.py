"""Chooses the tokens of a block on the device, in the pass that computes the block's logits."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.sampling import Sampling, display_distribution, pick
from engine.fast.kernels.truncation import truncated


@dataclass(frozen=True)
class OneEach:
    """Chooses one token from each of ``length`` rows of logits. sampling: the sampling settings, with seed 0 in place
    of the real seed: this object is part of a pass's key, and one pass serves all seeds."""

    length: int
    sampling: Sampling

    @property
    def greedy(self) -> bool:
        return self.sampling.greedy

    def __call__(self, logits: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor | None]:
        """Choose the tokens; returns them, int32 [length], and the draft distributions q [length, V] that they were
        drawn from, or None at temperature 0.

        logits: [length, V]. drawn: float64 [length], a uniform number for each row; unused at temperature 0."""
        if self.greedy:
            return display_distribution(logits, self.sampling).argmax(-1).to(torch.int32), None
        q = truncated(logits, self.sampling)
        return pick(q, drawn).to(torch.int32), q
