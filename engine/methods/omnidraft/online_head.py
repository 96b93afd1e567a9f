"""The chance that a drafted token is kept, predicted from the draft model's hidden state by a head that learns during
use.

The head of SpecDec++ (Huang et al., 2024), trained online as in OmniDraft (2025): one linear layer. Every judged token
gives one step of gradient descent on the cross-entropy.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

BEGIN = 0.8  # the chance before anything is learned
RATE = 0.5  # learning rate, for states scaled to length 1


class OnlineHead:
    def __init__(self, width: int) -> None:
        self._weight = torch.zeros(width)
        self._bias = math.log(BEGIN / (1 - BEGIN))
        self.seen = 0

    @property
    def nbytes(self) -> int:
        return self._weight.nbytes

    def chance(self, state: Tensor) -> float:
        """Return the chance that a token is kept. state: [H], the draft model's hidden state after the token."""
        odds = self._bias + float(self._weight @ _unit(state))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))

    def learn(self, state: Tensor, kept: bool) -> None:
        error = kept - self.chance(state)
        self._weight += RATE * error * _unit(state)
        self._bias += RATE * 0.1 * error
        self.seen += 1


def _unit(state: Tensor) -> Tensor:
    return F.normalize(state.float().cpu(), dim=-1)
