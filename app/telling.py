"""Does slow work in a thread beside the event that waits for it, so that the event can report its progress."""

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
    """Do the work in a thread of its own, with ``tell`` set. Yields (current task, share of it that is done, from 0 to
    1). Returns the work's result, and raises its errors."""
    messages: queue.SimpleQueue[tuple[str, float] | None] = queue.SimpleQueue()

    def do() -> T:
        tell.set(lambda task, share: messages.put((task, share)))
        return work()

    pool = ThreadPoolExecutor(1, thread_name_prefix="opening")
    future = pool.submit(contextvars.copy_context().run, do)
    future.add_done_callback(lambda _: messages.put(None))
    pool.shutdown(wait=False)
    while (message := messages.get()) is not None:
        yield message
    return future.result()
