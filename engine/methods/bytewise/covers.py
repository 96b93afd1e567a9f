"""The law of the next letter of a text, whatever tokens the text is cut into.

Phan et al., Exact Byte-Level Probabilities from Tokenized Language Models (2025). A cover of some letters is a row of tokens that
spells them and of which the last may spell more. The chance of the letters is the sum of the chances of their covers, and the law
of the next letter is the share of those that go on with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.methods.bytewise.letters import Vocabulary


@dataclass(frozen=True)
class Begun:
    """Covers that are alike but for their last token.

    place: behind which that token begins. tokens: [n], those that spell the letters so far and at least one more. weights: [n]
    float64, the chances of the covers. column: [n], the letters that come next. depth: letters of the token so far.
    """

    place: int
    tokens: Tensor
    weights: Tensor
    column: Tensor
    depth: int


@dataclass(frozen=True)
class Ended:
    """A cover whose last token ends with the letters so far. place: behind which that token began. weight: of the cover."""

    place: int
    token: int
    weight: float


class Covers:
    """The covers of the letters so far. A place is a number that the caller gives to a row of tokens.

    Covers that have just ended go on only where the caller opens a place for them. If all are opened, the law is exact; with those
    alone that a tokenizer would write, it is exact for a model that writes no others.
    """

    def __init__(self, vocabulary: Vocabulary, place: int, p: Tensor) -> None:
        """No letters yet. p: [V], the law of the first token, behind the place."""
        self._vocabulary = vocabulary
        self.begun: list[Begun] = []
        self.open(place, 1.0, p)

    def open(self, place: int, weight: float, p: Tensor) -> None:
        """A token begins here. weight: of the cover that ended here. p: [V], the law of the token, behind the place."""
        p = p.double().cpu()
        self._begin(place, torch.arange(len(p)), weight / float(p.sum()) * p, 0)

    def _begin(self, place: int, tokens: Tensor, weights: Tensor, depth: int) -> None:
        column = self._vocabulary.table[tokens, depth]
        self.begun.append(Begun(place, tokens, weights, column, depth))

    @property
    def mass(self) -> float:
        return sum(float(each.weights.sum()) for each in self.begun)

    def law(self) -> Tensor:
        """[A] float64, of the next letter; there must be covers."""
        law = torch.zeros(self._vocabulary.size, dtype=torch.float64)
        for each in self.begun:
            law.index_add_(0, each.column, each.weights)
        return law / law.sum()

    def go(self, letter: int) -> list[Ended]:
        """The letter comes next. Returns the covers that end with it."""
        before, self.begun, ended = self.begun, [], []
        for each in before:
            alike = each.column == letter
            tokens, weights = each.tokens[alike], each.weights[alike]
            longer = self._vocabulary.lengths[tokens] > each.depth + 1
            whole = zip(tokens[~longer].tolist(), weights[~longer].tolist(), strict=True)
            ended += [Ended(each.place, token, weight) for token, weight in whole if weight > 0]
            if longer.any():
                self._begin(each.place, tokens[longer], weights[longer], each.depth + 1)
        return ended
