"""The number of threads with which the process computes, and the engine's one lock."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import torch

ALL = torch.get_num_threads()
"""The number of threads with which the process began."""


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Set the number of torch's threads to ``count`` within the context; None leaves the number unchanged."""
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
    """Halve the number of torch's threads within the context, while two functions run at once."""
    global _halved
    _halved += 1
    try:
        with torch_threads(max(1, torch.get_num_threads() // 2)):
            yield
    finally:
        _halved -= 1


def is_halved() -> bool:
    """Whether a ``halved`` context is open, for code that has threads of its own beside torch's."""
    return _halved > 0


class InOrder:
    """A lock that threads acquire in the order of their requests. ``threading.RLock`` may give the lock repeatedly to
    the thread that has just released it, so that a run that reads a long prompt would keep others from beginning. The
    thread that holds the lock may acquire it again."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._line: deque[threading.Event] = deque()
        """One event per thread, in the order of the requests. The thread of the first event holds the lock, and the
        others wait."""
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
"""Held during each step of a run, so that the time of a step includes no work of another run."""


@contextmanager
def elsewhere() -> Iterator[None]:
    """Release the engine's lock within the context, if this thread holds it. This is for calls in which another machine
    computes and this one only waits."""
    try:
        ENGINE_LOCK.release()
    except RuntimeError:  # this thread does not hold it
        yield
        return
    try:
        yield
    finally:
        ENGINE_LOCK.acquire()
