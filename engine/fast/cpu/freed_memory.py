"""Returning memory to the system that this process does not need. Where the system has no such calls, nothing happens."""

import ctypes
import mmap
from contextlib import suppress

PAGE = mmap.PAGESIZE
PAGEOUT = 21  # of Linux; the numbers stay, in the file that they come from


def give_back() -> None:
    """Return freed memory to the system; otherwise the C library would keep it for later."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def not_wanted(address: int, size: int) -> None:
    """Numbers of a file that will hardly be read again need not stay in memory while the file is open."""
    first, end = -(-address // PAGE) * PAGE, (address + size) // PAGE * PAGE
    if end > first:
        with suppress(OSError, AttributeError):
            madvise = ctypes.CDLL("libc.so.6").madvise
            madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), PAGEOUT)
