"""Lets gradio's queue sleep until there is work.

While its queue is empty, gradio looks for work a thousand times a second, which costs a server that nobody visits a
tenth of a core. Here the queue sleeps until an event arrives, so a click waits no longer than it did, and usually less.
"""

import asyncio
import contextlib
from collections.abc import Callable

import gradio as gr
from gradio import queueing

PROGRESS_SECONDS = 0.5
"""Seconds between two checks for gradio's own progress bars, of which this page has none."""
LONGEST = 1.0
"""Seconds after which the queue looks for work unprompted, so that the loop of a closed queue ends."""


class _Sleep(float):
    """The pause of gradio's queue, in seconds; ``over`` waits for the queue's next event instead."""

    queue: queueing.Queue
    arrived: asyncio.Event

    async def over(self) -> None:
        if len(self.queue):  # an event waits for a free place: gradio's own pause
            await asyncio.sleep(float(self))
            return
        self.arrived.clear()  # nothing can arrive before the wait: one thread runs the loop
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.arrived.wait(), LONGEST)


class _Asyncio:
    """The module asyncio as gradio's queue gets it: only ``sleep`` differs."""

    def __getattr__(self, name: str):
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(delay, result=None):
        if isinstance(delay, _Sleep):
            return await delay.over()
        return await asyncio.sleep(delay, result)


def rest(page: gr.Blocks) -> Callable[[], None]:
    """Let this page's queue sleep until an event arrives. Returns a function that wakes the queue."""
    queue = page._queue
    pause = _Sleep(queue.sleep_when_free)
    pause.queue, pause.arrived = queue, asyncio.Event()
    push = queue.push

    async def pushed(*arguments, **named):
        try:
            return await push(*arguments, **named)
        finally:
            pause.arrived.set()

    queue.push = pushed
    queue.sleep_when_free = pause
    queue.progress_update_sleep_when_free = PROGRESS_SECONDS
    queueing.asyncio = _Asyncio()
    return pause.arrived.set
