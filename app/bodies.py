"""The bodies of requests, read under bounds before anything else sees them: size, time, the memory that all bodies
under way may take, and the number of values in their JSON."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from app.refusals import NONSENSE, Refused
from app.settings import LIMITS, Limits

SHARE = 4
"""One client may take this part of the memory for bodies: a quarter."""
SMALL = 1 << 18
"""Bytes below which the values of a body are not counted."""
MOST_VALUES = 200_000
"""JSON takes up to 40 times its own size once it is read; no request of the page has a hundredth of this."""


class Gone(Exception):
    """The client left before its request was complete."""


class Bodies:
    """The memory for bodies under way."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._held: Counter[str] = Counter()

    @contextmanager
    def read(self, client: str) -> Iterator["Reading"]:
        """The memory is given back when the context ends."""
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
    """One body. size: bytes so far."""

    def __init__(self, bodies: Bodies, client: str) -> None:
        self._bodies, self._client, self.size = bodies, client, 0

    async def whole(self, headers: Headers, receive: Receive) -> bytes:
        """The body. Raises Refused, and Gone."""
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
            told = f"A request must be complete within {limits.body_seconds} seconds."
            raise Refused(408, "body-slow", told, True) from None
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
        told = f"This page takes at most {limits.body_bytes // 1_000_000} MB in one request."
        return Refused(413, "body-large", told, True)


def _values(body: bytes) -> int:
    """At least the number of JSON values in this text, counted without reading it."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = plain.count(b'"')
    if quotes > 2 * MOST_VALUES:
        return quotes
    outside = b"".join(plain.split(b'"')[::2])
    return sum(outside.count(mark) for mark in (b",", b"[", b"{"))


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body as one message; after it, what ``receive`` says."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
