"""Counts the bytes of messages that wait to be read, so that they can be bounded.

Gradio puts an event's messages into a queue of its session, which grows until somebody reads it.
"""

import asyncio
import sys

from gradio.server_messages import EventMessage
from gradio.utils import LRUCache

LEAST = 1024
"""Bytes counted for the object of a message, besides its content."""


class Waiting(asyncio.Queue):
    """One session's unread messages. bytes: how much memory they take."""

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self.bytes = 0
        self._whole: dict[str, list] = {}
        """Id of an event -> its unread message that a later message may replace, and the bytes of that message."""

    def _put(self, message: EventMessage) -> None:
        entry = [message, weight(message)]
        self.bytes += entry[1]
        super()._put(entry)

    def _get(self) -> EventMessage:
        entry = super()._get()
        message, size = entry
        self.bytes -= size
        if self._whole.get(message.event_id) is entry:
            del self._whole[message.event_id]
        return message

    def put_whole(self, message: EventMessage) -> None:
        """Put an update that holds all that earlier updates of its event held. It replaces an unread one of them."""
        entry = self._whole.get(message.event_id)
        if entry is None:
            self.put_nowait(message)
            self._whole[message.event_id] = self._queue[-1]
            return
        size = weight(message)
        self.bytes += size - entry[1]
        entry[:] = message, size

    def events(self) -> set[str]:
        """Return the ids of the events that have an unread message."""
        return {message.event_id for message, _ in self._queue}

    def clear(self) -> None:
        while not self.empty():
            self.get_nowait()


class Sessions(LRUCache):
    """Gradio's mapping from a session to its queue of messages; here each queue counts its bytes."""

    def __setitem__(self, session: str, queue: asyncio.Queue) -> None:
        super().__setitem__(session, Waiting())

    def bytes(self) -> dict[str, int]:
        """Return session -> unread bytes, for the sessions that have any."""
        return {session: queue.bytes for session, queue in self.items() if queue.bytes}


def weight(message: EventMessage) -> int:
    """Return about how many bytes the message takes: the sizes of its texts, and a little for each other value."""
    size, left = LEAST, [getattr(message, "output", None)]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
        else:
            size += sys.getsizeof(value) if isinstance(value, str | bytes) else 32
    return size
