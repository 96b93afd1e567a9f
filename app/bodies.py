"""Reads the bodies of requests under bounds, before any other code sees them.

The bounds are on a body's size, its time, the memory of all bodies that are being read, and its number of JSON values.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from app.refusals import NONSENSE, Refused
from app.settings import LIMITS, Limits

SHARE = 4
"""One client may take one SHAREth of the memory for bodies: a quarter."""
SMALL = 1 << 18
"""In bytes: the JSON values of a smaller body are not counted."""
MOST_VALUES = 200_000
"""The most JSON values in a body. Parsed JSON takes up to 40 times its own size; no request of the page has a
hundredth of this many values."""


class Gone(Exception):
    """The client left before its request was complete."""


class Bodies:
    """Counts the memory of the bodies that are being read, by client."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._held: Counter[str] = Counter()

    @contextmanager
    def read(self, client: str) -> Iterator["Reading"]:
        """Give a ``Reading`` for one body of this client; its memory is given back when the context ends."""
        reading = Reading(self, client)
        try:
            yield reading
        finally:
            self._held[client] -= reading.size
            self._held += Counter()  # drops those that hold nothing

    def take(self, client: str, size: int) -> None:
        most = self._limits.bodies_megabytes * 1_000_000
        if self._held.total() + size > most or self._held[client] + size > most // SHARE:
            raise Refused(503, "body-memory", "Too much is being sent here now; try again.", True)
        self._held[client] += size


class Reading:
    """One body that is being read. size: the bytes received so far."""

    def __init__(self, bodies: Bodies, client: str) -> None:
        self._bodies, self._client, self.size = bodies, client, 0

    async def whole(self, headers: Headers, receive: Receive) -> bytes:
        """Return the complete body. Raises Refused if it breaks a bound, and Gone if the client leaves."""
        limits = self._bodies._limits
        most = limits.body_bytes
        declared = headers.get("content-length", "")
        if declared.isdigit() and int(declared) > most:
            raise self._too_large(limits)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    parts.append(self._kept(message, most, limits))
                    more = message.get("more_body", False)
        except TimeoutError:
            sentence = f"A request must be complete within {limits.body_seconds} seconds."
            raise Refused(408, "body-slow", sentence, True) from None
        body = b"".join(parts)
        if len(body) > SMALL and _values(body) > MOST_VALUES:
            raise Refused(413, "body-values", NONSENSE)
        return body

    def _kept(self, message: Message, most: int, limits: Limits) -> bytes:
        part = message.get("body", b"")
        if self.size + len(part) > most:
            raise self._too_large(limits)
        self._bodies.take(self._client, len(part))
        self.size += len(part)
        return part

    def _too_large(self, limits: Limits) -> Refused:
        sentence = f"This page takes at most {limits.body_bytes // 1_000_000} MB in one request."
        return Refused(413, "body-large", sentence, True)


def _values(body: bytes) -> int:
    """Return a count of the JSON values in this body, made without parsing it. It may be too high, but it exceeds
    MOST_VALUES if the true number does."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = plain.count(b'"')
    if quotes > 2 * MOST_VALUES:
        return quotes
    outside = b"".join(plain.split(b'"')[::2])
    return sum(outside.count(mark) for mark in (b",", b"[", b"{"))


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives the body as one message, and after it the messages of ``receive``."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
