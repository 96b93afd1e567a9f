"""The law of the next letter of a text, however the text is cut into tokens.

Phan et al., Exact Byte-Level Probabilities from Tokenized Language Models (2025). A cover of some letters is a sequence
of tokens that spells these letters; its last token may spell further letters. The probability of the letters is the sum
of the probabilities of their covers. The probability of a next letter is the share of the covers that continue with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.methods.bytewise.letters import Vocabulary


@dataclass(frozen=True)
class Begun:
    """Covers whose last token is not finished: it begins with the last letters so far and has further letters. All of
    these covers have the same tokens before the last one.

    place: the caller's number for the sequence of these earlier tokens. tokens: [n], the possible last tokens. weights:
    float64 [n], the probabilities of the covers. column: [n], for each last token, its next letter. depth: how many of
    the last token's letters belong to the letters so far.
    """

    place: int
    tokens: Tensor
    weights: Tensor
    column: Tensor
    depth: int


@dataclass(frozen=True)
class Ended:
    """A cover whose last token ends exactly where the letters so far end. place: the caller's number for the sequence
    of tokens before the last one. token: the last token. weight: the probability of the cover."""

    place: int
    token: int
    weight: float


class Covers:
    """All covers of the letters so far; letters are added one at a time. A *place* is a number that the caller gives to
    a sequence of tokens, after which the next token begins.

    A cover whose last token has just ended is continued only if the caller opens a place for it. If the caller opens a
    place for every such cover, the law of the next letter is exact. If the caller opens places only for the covers that
    a tokenizer would write, the law is exact for a model that writes no other sequences of tokens.
    """

    def __init__(self, vocabulary: Vocabulary, place: int, p: Tensor) -> None:
        """Begin without letters. p: [V], the law of the first token, which begins at ``place``."""
        self._vocabulary = vocabulary
        self.begun: list[Begun] = []
        self.open(place, 1.0, p)

    def open(self, place: int, weight: float, p: Tensor) -> None:
        """Let a new token begin at this place. weight: the probability of the cover that ended there. p: [V], the law
        of the new token."""
        p = p.double().cpu()
        self._begin(place, torch.arange(len(p)), weight / float(p.sum()) * p, 0)

    def _begin(self, place: int, tokens: Tensor, weights: Tensor, depth: int) -> None:
        column = self._vocabulary.table[tokens, depth]
        self.begun.append(Begun(place, tokens, weights, column, depth))

    @property
    def mass(self) -> float:
        return sum(float(covers.weights.sum()) for covers in self.begun)

    def law(self) -> Tensor:
        """Return the law of the next letter, float64 [A]. At least one cover must have a next letter."""
        law = torch.zeros(self._vocabulary.size, dtype=torch.float64)
        for covers in self.begun:
            law.index_add_(0, covers.column, covers.weights)
        return law / law.sum()

    def go(self, letter: int) -> list[Ended]:
        """Add a letter, and drop the covers whose next letter is another one. Returns the covers whose last token ends
        with the added letter."""
        before, self.begun, ended = self.begun, [], []
        for covers in before:
            alike = covers.column == letter
            tokens, weights = covers.tokens[alike], covers.weights[alike]
            longer = self._vocabulary.lengths[tokens] > covers.depth + 1
            whole = zip(tokens[~longer].tolist(), weights[~longer].tolist(), strict=True)
            ended += [Ended(covers.place, token, weight) for token, weight in whole if weight > 0]
            if longer.any():
                self._begin(covers.place, tokens[longer], weights[longer], covers.depth + 1)
        return ended
