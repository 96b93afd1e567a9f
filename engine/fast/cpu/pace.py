"""Decides from the times of the latest passes whether passes run on half of their threads.

The threads of a pass wait for each other some hundred times. Beside other busy processes the system gives the threads
turns of milliseconds, so a pass on all cores may take several times as long as on a quiet machine. On half of the cores
a pass is a little slower on a quiet machine, and often much faster on a busy one.

A pass may also be slow because the caches do not hold its weights. Then no other process takes a core, and the system
interrupts none of the threads. So a slow pass without interruptions is ignored.
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
"""A pass is slow if it takes at least this many times the shortest time of passes through the same graph with the same
shape."""
LATEST, MOST = 6, 3
"""Of the last LATEST passes, MOST may be slow. If more of them are slow, the next passes run on half of the threads."""
STAY = 400  # passes on half of the threads, before all are tried again
FORGIVE = 1.001  # growth of the shortest time with every pass: the machine may have changed
GAIN = 0.9
"""On half of the threads, passes must take less than this share of the time of the slow passes. If they do not,
something else made the passes slow, and for a while no pass runs on half of the threads."""


def interruptions() -> int | None:
    """How often the system has taken a core from a thread of this process; None where the system does not count
    this."""
    return None if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


class Pace:
    """Decides on how many threads the next pass runs.

    half: whether the next pass runs on only half of the process's threads. counted: returns the number of interruptions
    so far, as the function ``interruptions`` does.
    """

    def __init__(self, counted: Callable[[], int | None] = interruptions) -> None:
        self._counted, self._count = counted, counted()
        self.half = False
        self._latest: deque[float] = deque(maxlen=LATEST)  # slowness of passes on all threads
        self._halved: list[float] = []  # slowness of passes on half of the threads
        self._ignored = 0  # passes until slow ones count again
        self._patience = STAY

    def saw(self, slowness: float) -> None:
        """Record a pass. slowness: the pass's time, divided by the shortest time of such a pass on all threads."""
        interrupted = self._interrupted()
        if self.half:
            self._halved.append(slowness)
            if len(self._halved) >= STAY:
                self._end()
        elif self._ignored:
            self._ignored -= 1
        else:
            self._latest.append(slowness if interrupted else 1.0)
            self.half = sum(entry >= SLOW for entry in self._latest) > MOST

    def _interrupted(self) -> bool:
        """Whether a thread was interrupted since the last call; True where the system does not count interruptions."""
        before, self._count = self._count, self._counted()
        return self._count is None or self._count != before

    def _end(self) -> None:
        """Go back to all threads. If half of the threads did not help, ignore slow passes for a while, twice as long
        each time as the time before."""
        if median(self._halved) > GAIN * median(slow for slow in self._latest if slow >= SLOW):
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
        """The time of a pass, divided by the shortest time so far of passes whose first argument has this shape; 1.0
        for the first pass.

        whole: whether the pass ran on all threads; only the times of such passes can become the shortest time.
        """
        shortest = self._times.get(shape, inf) * FORGIVE
        if whole:
            shortest = self._times[shape] = min(shortest, seconds)
        return seconds / shortest if shortest < inf else 1.0


PACE = Pace()
"""The one ``Pace`` of this process. All passes share it, because other work on the machine slows them all."""
