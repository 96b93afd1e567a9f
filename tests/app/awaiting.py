"""Coroutines in tests: run in a thread of their own, because a browser in the same process has a loop in this one."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import TypeVar

T = TypeVar("T")


def awaited(work: Coroutine[object, object, T]) -> T:
    """The coroutine's result. Raises what it raises."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def asynchronous(test: Callable[..., Coroutine]) -> Callable[..., None]:
    """A test that is a coroutine, as one that pytest runs."""

    @wraps(test)
    def run(*given, **named) -> None:
        awaited(test(*given, **named))

    return run
