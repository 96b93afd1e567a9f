"""What drafters learn from a visitor's runs: one memory per browser session, never shared."""

import threading
from collections import OrderedDict

from app.settings import LIMITS
from engine.memory import Memory


class Memories:
    """The memories of the visitors seen last; the memory of the visitor away longest is dropped first."""

    def __init__(self, most: int = LIMITS.memories) -> None:
        self._most = most
        self._kept: OrderedDict[str, Memory] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session: str) -> Memory:
        """The visitor's memory, empty at first."""
        with self._lock:
            memory = self._kept.setdefault(session, Memory(LIMITS.memory_megabytes << 20))
            self._kept.move_to_end(session)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return memory

    def leave(self, session: str) -> None:
        """The visitor has gone, or wants what was learned to be forgotten."""
        with self._lock:
            self._kept.pop(session, None)
