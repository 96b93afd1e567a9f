"""Two vocabularies over one alphabet: the tokens of both as strings of letters.

The letters are the 256 bytes and the special tokens that both vocabularies have. Two more letters stand for tokens that
only the target or only the draft model can write; neither of the two ever matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch

from engine.methods.shared.spelling import Letters, Spelling

ENDED = -1  # fills the rows of a table of strings behind the last letter


class Vocabulary:
    """The strings of letters that a vocabulary's tokens spell.

    strings: [V]. An empty string is a token that only this vocabulary can write; it gets the single letter ``alone``.
    size: the number of letters.
    """

    def __init__(self, strings: Sequence[Letters], alone: int, size: int) -> None:
        self.strings = [tuple(string) or (alone,) for string in strings]
        self.size = size
        self.token_of = {string: token for token, string in enumerate(self.strings)}
        self.longest = max(map(len, self.strings))
        rows = [[*string, *[ENDED] * (self.longest - len(string))] for string in self.strings]
        self.table = torch.tensor(rows)
        self.lengths = torch.tensor([len(string) for string in self.strings])


_MADE: WeakKeyDictionary[Spelling, tuple[Vocabulary, Vocabulary]] = WeakKeyDictionary()


def vocabularies(spelling: Spelling) -> tuple[Vocabulary, Vocabulary]:
    """Return the target's vocabulary and the draft model's. They are built once for each pair of models."""
    if spelling not in _MADE:
        alone = spelling.letters
        sides = (spelling.written, alone + 1), (spelling.drafted, alone)
        _MADE[spelling] = tuple(Vocabulary(strings, own, alone + 2) for strings, own in sides)
    return _MADE[spelling]
