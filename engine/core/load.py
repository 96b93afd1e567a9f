"""The load of a target pass: facts about the other texts in the pass, for one text's drafter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

FORGETTING = 0.95  # weight of earlier steps in the share that was kept, per step
IDLE = 0.985  # the same, per step in which nothing was judged
BELIEF = 3.0  # drafted tokens that the first guess of the share counts for, at all times
GUESS = 0.85
"""That first guess. It is high because a long draft shows sooner than a short one how many of its tokens are kept."""

RowsOf = Callable[[Sequence[int]], int]
"""From the rows that each text asks for to the rows that the pass computes for all of them."""


@dataclass
class Acceptance:
    """The share of a text's judged drafted tokens that were kept; older steps count less, so the share of a text without
    drafts goes back to the first guess."""

    guess: float = GUESS
    kept: float = 0.0
    judged: float = 0.0

    @classmethod
    def as_of(cls, chances: Sequence[float]) -> Acceptance:
        """The estimate for a new text that joins texts with these shares."""
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
    """texts: how many shared the pass. rows: computed by it, padding included. context: the tokens up to the
    texts' roots, summed. chances: by text, the share of its drafted tokens that were kept in the steps before this
    one. rows_of: predicts ``rows`` of the next pass."""

    texts: int = 1
    rows: int = 1
    context: int = 0
    chances: tuple[float, ...] = (GUESS,)
    rows_of: RowsOf = sum

    @property
    def shared(self) -> bool:
        """Whether other texts made the pass larger."""
        return self.texts > 1 or self.rows_of is not sum

    @property
    def drafted(self) -> bool:
        """Whether any of the texts had a draft."""
        return self.rows > self.rows_of([1] * self.texts)


@dataclass(frozen=True)
class Expected:
    """prompt: its tokens. length: the most tokens of the whole text. Both are 0 if they are not known."""

    prompt: int = 0
    length: int = 0


UNKNOWN = Expected()
