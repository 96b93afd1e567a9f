"""Whether a way of drafting may go on trying: what it has cost so far, on the clock."""

from __future__ import annotations

from dataclasses import dataclass

ALLOWANCE = 0.01  # of the time on the clock that may be lost
LEARNING = 0.1  # weight of a new step in the running means
TRIAL = 2.0  # plain steps that an experiment is expected to cost


@dataclass
class Ledger:
    """Milliseconds of steps, compared with plain decoding of the same tokens.

    plain: of a step without draft and experiment, a running mean; None before the first. draft: of one
    draft pass; None before the first. clock: of all steps. lost: what drafted steps and experiments
    took beyond the plain steps that they replaced; below 0 where they saved time.
    """

    plain: float | None = None
    draft: float | None = None
    clock: float = 0.0
    lost: float = 0.0

    def plain_step(self, milliseconds: float) -> None:
        self.clock += milliseconds
        self.plain = _mean(self.plain, milliseconds)

    def other_step(self, milliseconds: float, tokens: int) -> None:
        """A step with a draft or an experiment in it, which gave so many tokens."""
        self.clock += milliseconds
        self.lost += milliseconds - tokens * (self.plain or milliseconds)

    def draft_pass(self, milliseconds: float) -> None:
        self.draft = _mean(self.draft, milliseconds)

    def affords(self, steps: float = TRIAL) -> bool:
        """Whether so many plain steps more may be lost."""
        if self.plain is None:
            return False
        return self.lost + steps * self.plain <= ALLOWANCE * self.clock


def _mean(before: float | None, new: float) -> float:
    return new if before is None else before + LEARNING * (new - before)
