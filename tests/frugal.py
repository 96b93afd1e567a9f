"""Between two files of tests: graphs of the next file have a budget of their own, so that which of them are made does
not depend on the files before; and a process that holds much puts its models away."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from engine.fast.cpu.budget import graph_memory
from engine.finding import modules, shared_parts
from engine.parts.models import open_model
from engine.parts.shelf import Shelf

MUCH = 3 * 2**30
"""Bytes. Three processes and a few servers of the page share 24 GB with whatever the tests start."""
MORE = 2**30
"""Bytes beyond those that were still held when models were last put away; fewer would come back with the next file."""
_limit = MUCH


def between_files(file: ModuleType) -> None:
    """Bound the graphs of the next file, and put models away if the process holds much. Called after the last test of a
    file."""
    global _limit
    graph_memory.cache_clear()
    if _held() < _limit:
        return
    _put_away([*_openers(), *vars(file).values()])
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library keeps what was freed
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    _limit = max(MUCH, _held() + MORE)


def _openers() -> list[object]:
    """Return all objects that may hold opened models or parts."""
    kinds = (*(module for _, module in modules("part")), *shared_parts())
    return [open_model, *(value for module in kinds for value in vars(module).values())]


def _put_away(openers: list[object]) -> None:
    for opener in openers:
        if hasattr(opener, "cache_clear") and not isinstance(opener, type):
            opener.cache_clear()


@contextmanager
def none_opened() -> Iterator[None]:
    """Open no model before the context. At its end, models opened within it are put away, and those from before come
    back."""
    openers = _openers()
    before = [(shelf, shelf._held.copy()) for shelf in openers if isinstance(shelf, Shelf)]
    _put_away(openers)
    yield
    _put_away(openers)
    for shelf, held in before:
        shelf._held = held


def _held() -> int:
    """Return the bytes of this process in memory; 0 if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0
    return pages * 4096
