"""Decides, by the time lost so far, whether a way of drafting may go on experimenting."""

from dataclasses import dataclass

ALLOWANCE = 0.01  # share of the elapsed time that may be lost
LEARNING = 0.1  # weight of a new step in the running means
TRIAL = 2.0  # plain steps that an experiment is expected to cost
CREDIT = TRIAL + 1.0
"""The loss, in plain steps, that is allowed beyond a share of the elapsed time: enough for one experiment, and one
draft that follows from it."""


@dataclass
class Ledger:
    """Times in milliseconds, for a comparison with plain decoding of the same tokens.

    plain: the running mean time of steps without a draft or an experiment; None before the first. draft: the running
    mean time of draft passes; None before the first. clock: the time of all steps together. lost: the time that drafted
    steps and experiments took beyond the plain steps that they replaced; negative if they saved time.
    """

    plain: float | None = None
    draft: float | None = None
    clock: float = 0.0
    lost: float = 0.0

    def plain_step(self, milliseconds: float) -> None:
        self.clock += milliseconds
        self.plain = _mean(self.plain, milliseconds)

    def other_step(self, milliseconds: float, tokens: int) -> None:
        """Record a step with a draft or an experiment in it, which wrote ``tokens`` tokens."""
        self.clock += milliseconds
        self.lost += milliseconds - tokens * (self.plain or milliseconds)

    def draft_pass(self, milliseconds: float) -> None:
        self.draft = _mean(self.draft, milliseconds)

    def affords(self, steps: float = TRIAL) -> bool:
        """Whether the time of ``steps`` more plain steps may be lost. The allowance is a share of the elapsed time plus
        a fixed credit; without the credit, a text of ordinary length would end before its first experiment."""
        if self.plain is None:
            return False
        return self.lost + (steps - CREDIT) * self.plain <= ALLOWANCE * self.clock


def _mean(before: float | None, new: float) -> float:
    return new if before is None else before + LEARNING * (new - before)
