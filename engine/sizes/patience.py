"""When measuring is given up: beside other busy processes it takes long and tells little."""

from collections.abc import Callable
from time import perf_counter, thread_time

SECONDS = 2.0
SHARE = 0.75
"""A thread that gets less of a core than this while it measures is not alone on its machine."""


class Patience:
    """Its time starts when it is made. clocks: wall time, and the time that this thread spent on a core."""

    def __init__(
        self,
        clocks: tuple[Callable[[], float], Callable[[], float]] = (perf_counter, thread_time),
    ) -> None:
        self._clocks = clocks
        self._began = [clock() for clock in clocks]

    @property
    def over(self) -> bool:
        wall, own = (
            clock() - began for clock, began in zip(self._clocks, self._began, strict=True)
        )
        return wall > SECONDS and own < SHARE * wall
