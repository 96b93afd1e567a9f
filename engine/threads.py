"""How many threads torch computes with: one setting a process, changed for a while."""

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
