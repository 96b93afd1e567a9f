"""The load of a target pass: facts about the other texts in the pass, for one text's drafter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

FORGETTING = 0.95  # the weight of earlier steps in the kept share shrinks by this factor per step
IDLE = 0.985  # the factor for a step in which nothing was judged
BELIEF = 3.0  # the first guess of the share always weighs as much as this many drafted tokens
GUESS = 0.85
"""The first guess of the kept share. It is high, and so the first drafts are long: a long draft shows sooner than a
short one how many of its tokens are kept."""

RowsOf = Callable[[Sequence[int]], int]
"""A function from the number of rows that each text needs to the number of rows that their shared pass computes."""


@dataclass
class Acceptance:
    """The share of a text's judged drafted tokens that were kept. Older steps count less. If a text stops drafting, its
    share slowly returns to the first guess."""

    guess: float = GUESS
    kept: float = 0.0
    judged: float = 0.0

    @classmethod
    def as_of(cls, chances: Sequence[float]) -> Acceptance:
        """The estimate for a new text that is decoded together with texts whose kept shares are ``chances``: the mean
        of these shares."""
        return cls(fmean(chances)) if chances else cls()

    @property
    def chance(self) -> float:
        return (self.kept + BELIEF * self.guess) / (self.judged + BELIEF)

    def see(self, kept: int, judged: int) -> None:
        weight = FORGETTING if judged else IDLE
        self.kept = weight * self.kept + kept
        self.judged = weight * self.judged + judged


@dataclass(frozen=True)
class Load:
    """The load of one target pass.
    texts: the number of texts that shared the pass. rows: the number of rows that the pass computed, padding included.
    context: the number of tokens up to the root, summed over the texts. chances: for each text, the share of its
    drafted tokens that were kept in earlier steps. rows_of: predicts ``rows`` of the next pass."""

    texts: int = 1
    rows: int = 1
    context: int = 0
    chances: tuple[float, ...] = (GUESS,)
    rows_of: RowsOf = sum

    @property
    def shared(self) -> bool:
        """Whether the pass was larger because of other texts."""
        return self.texts > 1 or self.rows_of is not sum

    @property
    def drafted(self) -> bool:
        """Whether at least one of the texts had a draft."""
        return self.rows > self.rows_of([1] * self.texts)


@dataclass(frozen=True)
class Expected:
    """The size of a text that is about to begin. prompt: the number of prompt tokens. length: the most tokens of the
    whole text, prompt included. Both are 0 if they are not known."""

    prompt: int = 0
    length: int = 0


UNKNOWN = Expected()
