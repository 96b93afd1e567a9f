"""Keeps what drafters learn from a visitor's runs: one memory per browser session, never shared."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from app.settings import LIMITS
from app.visitors import anyone, first_to_go
from engine.core.memory import Memory


class Memories:
    """The memories of the visitors who are here, and of the visitors who were here last."""

    def __init__(
        self,
        most: int = LIMITS.memories,
        seconds: float = LIMITS.kept_seconds,
        here: Callable[[str], bool] = anyone,
    ) -> None:
        """seconds: how long a memory is kept after its visitor has left. here: returns whether a visitor has the page
        open."""
        self._most, self._seconds, self._here = most, seconds, here
        self._kept: OrderedDict[str, Memory] = OrderedDict()
        self._left: dict[str, float] = {}
        """Session -> when the connection to its browser ended; removed when the visitor is back."""
        self._lock = threading.Lock()

    def of(self, session: str) -> Memory:
        """Return the visitor's memory, empty at first. If there are too many, another visitor's memory is dropped."""
        with self._lock:
            memory = self._kept.setdefault(session, Memory(LIMITS.memory_megabytes << 20))
            self._kept.move_to_end(session)
            self._left.pop(session, None)
            while len(self._kept) > self._most:
                self._drop(first_to_go(self._kept, session, self._here, self._learned))
            return memory

    def leave(self, session: str) -> None:
        """Drop the visitor's memory, at the visitor's wish."""
        with self._lock:
            self._drop(session)

    def cut_off(self, session: str) -> None:
        """Note that the connection to the visitor's browser has ended: the tab was closed, or the network broke."""
        with self._lock:
            if session in self._kept:
                self._left[session] = time.monotonic()

    def sweep(self) -> None:
        """Drop the memories of visitors who left and did not come back in time."""
        oldest = time.monotonic() - self._seconds
        with self._lock:
            for session in [visitor for visitor, since in self._left.items() if since < oldest]:
                self._drop(session)

    def _learned(self, session: str) -> bool:
        return self._kept[session].nbytes > 0

    def _drop(self, session: str) -> None:
        self._kept.pop(session, None)
        self._left.pop(session, None)
