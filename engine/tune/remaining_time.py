"""Estimates how much of a tuning is done, and how many seconds are left."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter


@dataclass
class RemainingTime:
    """An estimate of the time that a tuning still needs. texts: the number of texts still to be written. other: the
    seconds that the work after the last text will take."""

    texts: int = 0
    other: float = 0.0
    _written: int = 0
    _done: float = 0.0  # the largest share told so far

    def __post_init__(self) -> None:
        self._began = perf_counter()
        self._first: float | None = None  # when the first text was written

    def wrote(self) -> None:
        """Record that one more text has been written."""
        self.texts = max(0, self.texts - 1)
        if self._first is None:
            self._first = perf_counter()
        else:
            self._written += 1

    def line(self, doing: str) -> dict:
        """A ``progress`` line. doing: the present work, in words. ``done`` never falls, even when the estimate of the
        time that is left grows."""
        now, left = perf_counter(), None
        if self._written:
            left = self.texts * (now - self._first) / self._written + self.other
        gone = now - self._began
        if left is not None:
            self._done = max(self._done, gone / (gone + left))
        told = None if left is None else round(left, 1)
        return {
            "kind": "progress",
            "done": round(self._done, 3),
            "seconds_left": told,
            "doing": doing,
        }
