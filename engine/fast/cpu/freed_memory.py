"""Returns unneeded memory of this process to the system. Where the system has no calls for this, nothing happens."""

import ctypes
import mmap
from contextlib import suppress

PAGE = mmap.PAGESIZE
PAGEOUT = 21  # of Linux; the numbers stay, in the file that they come from


def give_back() -> None:
    """Return freed memory to the system. Without this call, the C library keeps it for later allocations."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def not_wanted(address: int, size: int) -> None:
    """Let the system drop the ``size`` bytes of memory pages from an address on. Pages of a mapped file are read from
    the file again when they are needed."""
    first, end = -(-address // PAGE) * PAGE, (address + size) // PAGE * PAGE
    if end > first:
        with suppress(OSError, AttributeError):
            madvise = ctypes.CDLL("libc.so.6").madvise
            madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), PAGEOUT)
