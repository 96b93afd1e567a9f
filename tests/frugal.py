"""Between two files of tests: graphs of the next file have a budget of their own, so that which of them are made does
not depend on the files before; and a process that holds much puts its models away."""

import ctypes
import gc
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from engine.fast.cpu.budget import graph_memory
from engine.finding import modules, shared_parts
from engine.parts.models import open_model

MUCH = 2 * 2**30
"""Bytes. Three processes and two servers of the page share 24 GB with whatever the tests start."""


def between_files(file: ModuleType) -> None:
    """Called after the last test of a file."""
    graph_memory.cache_clear()
    if _held() < MUCH:
        return
    forget(vars(file).values())
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library keeps what was freed
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def forget(more: Iterable[object] = ()) -> None:
    """Put away all models that were opened, and whatever else is cached by one of these."""
    kinds = (*(module for _, module in modules("part")), *shared_parts())
    opened = (value for module in kinds for value in vars(module).values())
    for cached in (open_model, *opened, *more):
        if hasattr(cached, "cache_clear") and not isinstance(cached, type):
            cached.cache_clear()


def _held() -> int:
    """Bytes of this process in memory; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0
    return pages * 4096
