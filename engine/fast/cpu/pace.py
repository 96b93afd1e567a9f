"""Whether passes run on half of their threads, by the times of the latest passes.

The threads of a pass wait for each other some hundred times. Beside other busy processes the system gives the threads
turns of milliseconds, so a pass on all cores may take several times as long as usual. On half of the cores it is a
little slower on a quiet machine, and often much faster on a busy one.

A pass may also be slow because the caches do not hold its weights. No other process takes a core then, so the system
interrupts none of the threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from statistics import median

try:
    import resource
except ImportError:  # Windows
    resource = None

SLOW = 2.0
"""Times the shortest time of the same pass."""
LATEST, MOST = 6, 3
"""Of the latest passes so many may be slow; with one more, the next ones run on half of the threads."""
STAY = 400  # passes on half of the threads, before all are tried again
FORGIVE = 1.001  # growth of the shortest time with every pass: the machine may have changed
GAIN = 0.9
"""Passes on half of the threads must take less than this share of the time of the slow ones; else other reasons made
these slow, and half of the threads is not tried for a while."""


def interruptions() -> int | None:
    """How often the system has taken a core from a thread of this process; None where the system does not tell."""
    return None if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


class Pace:
    """half: whether the next pass is to run on half of its threads. counted: as ``interruptions``."""

    def __init__(self, counted: Callable[[], int | None] = interruptions) -> None:
        self._counted, self._count = counted, counted()
        self.half = False
        self._latest: deque[float] = deque(maxlen=LATEST)  # slowness of passes on all threads
        self._halved: list[float] = []  # and of those on half of them
        self._ignored = 0  # passes until slow ones count again
        self._patience = STAY

    def saw(self, slowness: float) -> None:
        """slowness: the time of a pass, divided by the shortest time of the same pass on all threads."""
        interrupted = self._interrupted()
        if self.half:
            self._halved.append(slowness)
            if len(self._halved) >= STAY:
                self._end()
        elif self._ignored:
            self._ignored -= 1
        else:
            self._latest.append(slowness if interrupted else 1.0)
            self.half = sum(each >= SLOW for each in self._latest) > MOST

    def _interrupted(self) -> bool:
        """Whether a thread was interrupted since the last call, as far as the system tells."""
        before, self._count = self._count, self._counted()
        return self._count is None or self._count != before

    def _end(self) -> None:
        """Go back to all threads, and ignore slow passes for longer and longer if half of the threads did not help."""
        if median(self._halved) > GAIN * median(each for each in self._latest if each >= SLOW):
            self._ignored, self._patience = self._patience, 2 * self._patience
        else:
            self._patience = STAY
        self.half = False
        self._latest.clear()
        self._halved.clear()


class Shortest:
    """The shortest times of one graph's passes, by the shape of their first argument."""

    def __init__(self) -> None:
        self._times: dict[tuple, float] = {}

    def slowness(self, shape: tuple, seconds: float, whole: bool) -> float:
        """The time divided by the shortest so far. whole: the pass ran on all threads, so its time counts."""
        shortest = self._times.get(shape, inf) * FORGIVE
        if whole:
            shortest = self._times[shape] = min(shortest, seconds)
        return seconds / shortest if shortest < inf else 1.0


PACE = Pace()
"""Of this process: other work slows all of its passes."""
