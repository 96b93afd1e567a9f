"""Connections under bounds, below what an ASGI application sees: a request must begin, an answer must be read, and one
address holds a bounded number of connections. What is yet to be read takes so many bytes for one address, and for all."""

import asyncio
import ipaddress
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

import uvicorn.config
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from app.refusals import note
from app.settings import LIMITS
from app.visitors import client, proxies


class Connection(AutoHTTPProtocol):
    limits = LIMITS
    proxies = [ipaddress.ip_network(one, strict=False) for one in proxies().split(",") if one]
    """These carry many visitors, so the number of their connections is not bounded."""
    _open: defaultdict[str, set["Connection"]] = defaultdict(set)
    """By peer."""
    _peer: str | None = None
    _proxy = False
    _watch: asyncio.TimerHandle | None = None
    _last = None
    """The request that was under way, or over, when the connection was last looked at."""
    _unread = 0
    """Bytes that waited for the client when it was last looked at; 0 while none do."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        self._peer, self._proxy = client(host), self._is_proxy(host)
        self._open[self._peer].add(self)
        if not self._proxy and len(self._open[self._peer]) > self.limits.client_requests:
            note("connections")
            transport.abort()
            return
        self._look_again()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._watch:
            self._watch.cancel()
        if self._peer is not None:
            self._open[self._peer].discard(self)
            if not self._open[self._peer]:
                del self._open[self._peer]
            self._peer = None

    def pause_writing(self) -> None:
        """Called when much is unread: no memory may fill until the next look."""
        super().pause_writing()
        self._relieve()

    def handle_websocket_upgrade(self, *request: object) -> None:
        """The page has none; a connection that became one would be counted for ever."""
        note("websocket")
        self.transport.abort()

    def _is_proxy(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return True  # a socket of this machine: only a proxy connects there
        return any(address in network for network in self.proxies)

    def _look_again(self) -> None:
        self._watch = self.loop.call_later(self.limits.body_seconds, self._look)

    def _look(self) -> None:
        """End a connection on which no request has begun since the last look, and one whose client has read nothing since the last
        look. Gradio's streams, the heartbeat too, send something at least every 15 seconds, and are read."""
        unread = self.transport.get_write_buffer_size()
        idle = self.cycle is None or self.cycle.response_complete
        still = idle and self._last is self.cycle
        if (unread and self._unread and unread >= self._unread) or (still and not unread):
            note("connection-idle" if not unread else "connection-unread")
            self.transport.abort()
            return
        self._unread, self._last = unread, self.cycle
        self._look_again()
        if unread:
            self._relieve()

    def _relieve(self) -> None:
        """Where the peer's connections, or all of them, hold too much that is unread, though each is read a little, end those that
        hold most."""
        most = self.limits.unread_bytes
        if not self._proxy:
            _end_heaviest(self._open.get(self._peer, ()), most // 4)
        _end_heaviest(chain.from_iterable(self._open.values()), most)


def _end_heaviest(connections: Iterable[Connection], most: int) -> None:
    """End those that hold most, until the others hold at most so many bytes."""
    unread = {one: one.transport.get_write_buffer_size() for one in connections}
    while sum(unread.values()) > most:
        heaviest = max(unread, key=unread.__getitem__)
        del unread[heaviest]
        note("connection-unread")
        heaviest.transport.abort()


def use() -> None:
    """Let uvicorn, which gradio starts, make its connections of this kind."""
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:Connection"
