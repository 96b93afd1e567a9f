"""A step scorer: it predicts the probability that all steps of a worked sum so far are right, from the target's
log-probabilities of their tokens.

It takes the place of the process reward model of Chatziveroglou, A*-Decoding: Token-Efficient Inference Scaling (2025).
It consists of two small linear maps with SiLU between them, and reads log p of the tokens at temperature 1. Heads on
the target's hidden state at the end of a step were tried as well: they separate right from wrong far less well.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.parts.module_part import ModulePart

TOLD = 4  # inputs of the scorer: the least log p and the sum of log p, over all tokens and over the last step's


class StepScorer(ModulePart):
    key, noun, reads_states = "step_scorer", "step scorer", False

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.inner = nn.Linear(TOLD, inner)
        self.out = nn.Linear(inner, 1)

    @classmethod
    def of_files(cls, config, tensors, target):
        return cls(len(tensors["inner.weight"]))

    def fields(self):
        return {"inner": self.inner.out_features}

    @classmethod
    def tiny(cls, target, opener=None):
        return cls(2).eval().requires_grad_(False)

    def forward(self, told: Tensor) -> Tensor:
        """Map signals [..., TOLD], which ``told`` computes, to the log-odds [...] that all steps so far are right."""
        return self.out(F.silu(self.inner(told))).squeeze(-1)

    def right(self, logs: Sequence[float], begun: int) -> float:
        """Return the chance that all steps so far are right. logs: log p of each token so far. begun: the index of the
        last step's first token."""
        return float(self(told(logs, begun)).sigmoid())


def told(logs: Sequence[float], begun: int) -> Tensor:
    """Return the scorer's input [TOLD]: the least log p of all tokens and of the last step's tokens, then the sum of
    log p of all tokens and of the last step's tokens. logs, begun: as in ``StepScorer.right``."""
    last = logs[begun:]
    return torch.tensor([min(logs), min(last), sum(logs), sum(last)], dtype=torch.float32)


KIND = StepScorer.kind()
