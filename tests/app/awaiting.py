"""Runs coroutines in tests in a thread of their own, because a browser in the same process has an event loop in this
thread."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import TypeVar

T = TypeVar("T")


def awaited(work: Coroutine[object, object, T]) -> T:
    """Run the coroutine, and return its result. Raises its errors."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def asynchronous(test: Callable[..., Coroutine]) -> Callable[..., None]:
    """Decorate a test that is a coroutine, so that pytest can run it."""

    @wraps(test)
    def run(*given, **named) -> None:
        awaited(test(*given, **named))

    return run
