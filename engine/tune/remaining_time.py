"""How far a tuning is, and how long it will still take."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter


@dataclass
class RemainingTime:
    """texts: still to be written. other: seconds of what comes after them."""

    texts: int = 0
    other: float = 0.0
    _written: int = 0
    _spent: float = 0.0

    def __post_init__(self) -> None:
        self._began = perf_counter()

    def wrote(self, seconds: float) -> None:
        """One text."""
        self.texts = max(0, self.texts - 1)
        self._written += 1
        self._spent += seconds

    def line(self, doing: str) -> dict:
        """A ``progress`` line."""
        left = None
        if self._written:
            left = self.texts * self._spent / self._written + max(0.0, self.other)
        gone = perf_counter() - self._began
        done = 0.0 if left is None else gone / (gone + left) if gone + left else 1.0
        told = None if left is None else round(left, 1)
        return {"kind": "progress", "done": round(done, 3), "seconds_left": told, "doing": doing}
