"""The number of threads that the process computes with, a setting that is changed for a while, and the engine's one lock."""

import threading
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


ENGINE_LOCK = threading.RLock()
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
