"""Two vocabularies over one alphabet: the tokens of each as strings of letters, and the laws of the next letter.

The letters are the 256 bytes and the special tokens that both vocabularies have. Two more stand for a token that only one
of the vocabularies can write; neither is ever matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from engine.methods.shared.spelling import Letters, Spelling

ENDED = -1  # in a table of strings: behind the last letter


class Vocabulary:
    """The strings of a vocabulary's tokens.

    strings: [V]; () for a token that only this vocabulary can write, whose single letter is ``alone``. size: letters.
    """

    def __init__(self, strings: Sequence[Letters], alone: int, size: int) -> None:
        self.strings = [tuple(string) or (alone,) for string in strings]
        self.size = size
        self.token_of = {string: token for token, string in enumerate(self.strings)}
        self.longest = max(map(len, self.strings))
        rows = [[*string, *[ENDED] * (self.longest - len(string))] for string in self.strings]
        self.table = torch.tensor(rows)
        self.lengths = torch.tensor([len(string) for string in self.strings])
        self._all = torch.arange(len(rows))

    def along(self, p: Tensor, string: Sequence[int]) -> Iterator[Letter]:
        """The letters of a string, one after another, as far as a single token can go along with them.

        p: [V], the law of the next token. At each letter it is given that the token begins with the letters before, and does
        not end there.
        """
        going = self._all
        for place, letter in enumerate(string[: self.longest]):
            mass = float(p[going].sum())
            if mass <= 0:
                return
            column = self.table[going, place]
            law = torch.zeros(self.size, dtype=p.dtype)
            law.index_add_(0, column, p[going] / mass)
            alike = going[column == letter]
            longer = self.lengths[alike] > place + 1
            yield Letter(letter, law, going, column, alike[~longer], alike[longer])
            going = alike[longer]

    def laws(self, p: Tensor, token: int) -> Tensor:
        """[letters of the token, A]: the laws from which these letters come when the token is drawn from p [V]."""
        return torch.stack([each.law for each in self.along(p, self.strings[token])])


_MADE: WeakKeyDictionary[Spelling, tuple[Vocabulary, Vocabulary]] = WeakKeyDictionary()


def vocabularies(spelling: Spelling) -> tuple[Vocabulary, Vocabulary]:
    """The target's and the draft's; made once for a pair of models."""
    if spelling not in _MADE:
        alone = spelling.letters
        sides = (spelling.written, alone + 1), (spelling.drafted, alone)
        _MADE[spelling] = tuple(Vocabulary(strings, own, alone + 2) for strings, own in sides)
    return _MADE[spelling]


@dataclass(frozen=True)
class Letter:
    """A place in a string that a token may go along with.

    law: [A] of the letter here. going: the tokens that have a letter here and all letters before. column: their letters here.
    ending: those of them that end with this letter. longer: those that have this letter and go on.
    """

    letter: int
    law: Tensor
    going: Tensor
    column: Tensor
    ending: Tensor
    longer: Tensor


@dataclass(frozen=True)
class DrawnString:
    """A string of letters that a draft model has drawn, for the rule that judges its letters.

    vocabulary: the target's. letters: [M]. laws: [M, A], the law from which each letter was drawn, given all that the draft
    had drawn before. ends: how many letters lead from the root to each node of the tree.
    """

    vocabulary: Vocabulary
    letters: list[int]
    laws: Tensor
    ends: list[int]


def next_token_law(vocabulary: Vocabulary, p: Tensor, letters: Sequence[int], q: Tensor) -> Tensor:
    """The law [V] of the next token once the letters drafted behind the root have been judged one by one.

    p: [V] float64, the target's. q: [M, A], the laws of the letters. A letter x is kept with the chance min(1, p(x) / q(x)); a
    refused one is replaced by a draw from the residual, and the rest of the token is the target's. Behind every kept letter
    the target decides whether its token ends there. Averaged over the draws from q, the result is p, however the target cuts
    the text into tokens.
    """
    law, alive, behind = torch.zeros_like(p), 1.0, torch.arange(len(p))
    for place, step in enumerate(vocabulary.along(p, letters)):
        drawn = q[place].to(p.dtype)
        accept = min(1.0, float(step.law[step.letter] / drawn[step.letter]))
        residual = (step.law - drawn).clamp_(min=0)
        if accept < 1 and residual.sum() > 0:
            share = residual / residual.sum() / step.law.clamp(min=1e-300)
            here = p[step.going]
            law[step.going] += alive * (1 - accept) * share[step.column] * here / here.sum()
        alive *= accept
        ends, behind = p[step.ending], step.longer
        mass = float(ends.sum() + p[behind].sum())
        if alive == 0 or mass <= 0:
            return law
        law[step.ending] += alive * ends / mass
        alive *= max(0.0, 1 - float(ends.sum()) / mass)
    left = float(p[behind].sum())
    if left > 0:
        law[behind] += alive * p[behind] / left
    return law
