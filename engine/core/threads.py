"""The number of threads that the process computes with, a setting that is changed for a while, and the engine's one lock."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import torch

ALL = torch.get_num_threads()
"""The number that the process began with."""


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Compute with ``count`` threads for a while; None leaves the number as it is."""
    before = torch.get_num_threads()
    if count is None or count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_halved = 0


@contextmanager
def halved() -> Iterator[None]:
    """Two pieces of work run at once: each computes with half of the threads."""
    global _halved
    _halved += 1
    try:
        with torch_threads(max(1, torch.get_num_threads() // 2)):
            yield
    finally:
        _halved -= 1


def is_halved() -> bool:
    """Whether ``halved`` is in force, for code whose threads are not torch's."""
    return _halved > 0


class InOrder:
    """A lock that threads get in the order in which they asked for it. ``threading.RLock`` may go again and again to the thread that
    has just given it up, so that a run that reads a long prompt would keep others from beginning. The thread that holds the
    lock may take it once more."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._line: deque[threading.Event] = deque()
        """A turn for each thread that holds the lock, the first, or waits for it."""
        self._owner, self._depth = 0, 0

    def acquire(self) -> None:
        if self._owner != threading.get_ident():
            self._wait()
            self._owner = threading.get_ident()
        self._depth += 1

    def _wait(self) -> None:
        mine = threading.Event()
        with self._guard:
            self._line.append(mine)
            self._line[0].set()
        try:
            mine.wait()
        except BaseException:
            self._leave(mine)
            raise

    def release(self) -> None:
        """Raises RuntimeError in a thread that does not hold the lock."""
        if self._owner != threading.get_ident():
            raise RuntimeError("The engine's lock is not held by this thread.")
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._leave(self._line[0])

    def _leave(self, turn: threading.Event) -> None:
        with self._guard:
            self._line.remove(turn)
            if self._line:
                self._line[0].set()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


ENGINE_LOCK = InOrder()
"""Held for each step, so that no lane's time includes another lane's work."""


@contextmanager
def elsewhere() -> Iterator[None]:
    """Another machine computes: whoever waits for it lets others have the engine's lock, if this thread holds it."""
    try:
        ENGINE_LOCK.release()
    except RuntimeError:  # it is not this thread's
        yield
        return
    try:
        yield
    finally:
        ENGINE_LOCK.acquire()
