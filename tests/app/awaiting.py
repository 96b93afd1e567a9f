"""Coroutines in tests: run in a thread of their own, because a browser in the same process has a loop in this one."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def awaited(work: Coroutine[object, object, T]) -> T:
    """The coroutine's result. Raises what it raises."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()
