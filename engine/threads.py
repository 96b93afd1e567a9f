"""How many threads a process computes with: settings of the whole process, changed for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

ALL = torch.get_num_threads()
"""What the process began with."""


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """count: for the time being; None leaves it as it is."""
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
    """For code whose threads are not torch's."""
    return _halved > 0
