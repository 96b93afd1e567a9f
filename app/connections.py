"""Bounds connections, below the level that an ASGI application sees.

A request must begin, and its answer must be read, in time. One address holds a bounded number of connections. Unread
answers take a bounded number of bytes: for each address, and for all addresses together.
"""

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
    proxies = [ipaddress.ip_network(proxy, strict=False) for proxy in proxies().split(",") if proxy]
    """Each proxy carries many visitors, so the number of its connections is not bounded."""
    _open: defaultdict[str, set["Connection"]] = defaultdict(set)
    """Peer address -> its open connections."""
    _peer: str | None = None
    _proxy = False
    _watch: asyncio.TimerHandle | None = None
    _last = None
    """The connection's latest request at the time of the last look, whether under way or over."""
    _unread = 0
    """Bytes that waited for the client at the time of the last look."""

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
        """Called when much is unread: ends the heaviest connections now, so that memory does not fill until the next
        look."""
        super().pause_writing()
        self._relieve()

    def handle_websocket_upgrade(self, *request: object) -> None:
        """Refuse to become a websocket: the page has none, and the connection would be counted for ever."""
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
        """End the connection if, since the last look, no request has begun on it or its client has read nothing.

        Gradio's streams, heartbeats included, send something at least every 15 seconds, and browsers read them.
        """
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
        """End the connections with the most unread bytes, if this peer's or all connections hold too many together.

        So a peer cannot fill the memory by many connections that it reads just a little.
        """
        most = self.limits.unread_bytes
        if not self._proxy:
            _end_heaviest(self._open.get(self._peer, ()), most // 4)
        _end_heaviest(chain.from_iterable(self._open.values()), most)


def _end_heaviest(connections: Iterable[Connection], most: int) -> None:
    """End the connections with the most unread bytes, until the rest hold at most ``most`` bytes."""
    unread = {
        connection: connection.transport.get_write_buffer_size() for connection in connections
    }
    while sum(unread.values()) > most:
        heaviest = max(unread, key=unread.__getitem__)
        del unread[heaviest]
        note("connection-unread")
        heaviest.transport.abort()


def use() -> None:
    """Make uvicorn, which gradio starts, use ``Connection`` for its connections."""
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:Connection"
