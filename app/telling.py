"""Slow work, done in a thread beside the event that waits for it, so that the visitor hears how far it has come."""

import contextvars
import queue
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from engine.progress import Tell, silent

T = TypeVar("T")

tell: contextvars.ContextVar[Tell] = contextvars.ContextVar("tell", default=silent)
"""Receives the progress of the work in this context."""


def heard(work: Callable[[], T]) -> Generator[tuple[str, float], None, T]:
    """Do the work in a thread of its own, with ``tell`` set. Yields (the current task, share); returns the work's
    result and raises the work's errors."""
    told: queue.SimpleQueue[tuple[str, float] | None] = queue.SimpleQueue()

    def do() -> T:
        tell.set(lambda task, share: told.put((task, share)))
        return work()

    pool = ThreadPoolExecutor(1, thread_name_prefix="opening")
    future = pool.submit(contextvars.copy_context().run, do)
    future.add_done_callback(lambda _: told.put(None))
    pool.shutdown(wait=False)
    while (message := told.get()) is not None:
        yield message
    return future.result()
