"""Connections of a real server, whose clients read less than they ask for."""

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
import uvicorn

from app.connections import Connection
from app.settings import LIMITS

ANSWER = 24_000_000
"""Bytes."""


class Small(Connection):
    limits = replace(
        LIMITS, unread_megabytes=160, trace_megabytes=1, body_seconds=2
    )  # 40 MB a client
    proxies = ()
    made: list[Connection] = []

    def connection_made(self, transport: asyncio.Transport) -> None:
        held = transport.get_extra_info("socket")
        held.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)  # the system holds little
        super().connection_made(transport)
        self.made.append(self)


async def long_answer(scope, receive, send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a" * ANSWER})


@contextmanager
def served(app, **settings):
    """Yield the port of a server whose connections are of the class ``Small``, or as the settings say."""
    Small.made.clear()
    Small._open.clear()
    settings = {"http": Small, "lifespan": "off", "log_config": None, **settings}
    config = uvicorn.Config(app, port=0, **settings)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=asyncio.run, args=(server.serve(),), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)


def asked(port: int, headers: str = "", source: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(source, 0))
    made.sendall(f"GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n".encode())
    return made


async def _sizes() -> list[int]:
    return [one.transport.get_write_buffer_size() for one in Small.made]


def unread() -> int:
    """Return the bytes that wait for all clients. The server's own thread counts them, between two of its writes."""
    return sum(asyncio.run_coroutine_threadsafe(_sizes(), Small.made[0].loop).result(10))


def wait_until(reached: Callable[[], bool]) -> None:
    """Wait for at most ten seconds; fail if that is not enough."""
    patience = time.monotonic() + 10
    while not reached():
        assert time.monotonic() < patience
        time.sleep(0.05)


def everybody_answered(clients: int) -> bool:
    return len(Small.made) == clients and all(one.cycle for one in Small.made)


def test_many_answers_that_are_read_a_little_take_no_more_than_a_share():
    with served(long_answer) as port:
        read, patience = {asked(port): 0 for _ in range(4)}, time.monotonic() + 60
        while max(read.values()) < ANSWER:
            assert time.monotonic() < patience, "one of them goes on to its end"
            for client in read:
                with suppress(OSError):
                    read[client] += len(client.recv(200_000))
            if everybody_answered(len(read)):
                assert unread() <= Small.limits.unread_bytes // 4
            time.sleep(0.01)
        assert sum(size >= ANSWER for size in read.values()) < len(read), "some are ended"
        for client in read:
            client.close()


class Patient(Small):
    """Connections whose next look comes long after the test."""

    limits = replace(LIMITS, unread_megabytes=16, trace_megabytes=1, body_seconds=60)


async def short_answer(scope, receive, send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a" * 3_000_000})


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.1 is the only such address")
@pytest.mark.parametrize(("peers", "share"), [(1, 4), (8, 1)], ids=["one address", "all addresses"])
def test_answers_that_nobody_reads_take_no_more_than_a_share_at_any_time(peers, share):
    with served(short_answer, http=Patient) as port:
        slow = [asked(port, source=f"127.0.0.{2 + number % peers}") for number in range(8)]
        wait_until(lambda: everybody_answered(len(slow)))
        time.sleep(0.3)
        assert 0 < unread() <= Patient.limits.unread_bytes // share
        for one in slow:
            one.close()


class Websocket(asyncio.Protocol):
    """The protocol that uvicorn would give to a websocket if a package for websockets were installed."""

    def __init__(self, **_: object) -> None:
        super().__init__()


def test_a_websocket_ends_and_is_counted_no_longer():
    with served(long_answer, ws=Websocket) as port:
        headers = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
        for _ in range(3):
            with suppress(ConnectionResetError), asked(port, headers) as one:
                one.settimeout(30)
                assert one.recv(1000) == b""
        wait_until(lambda: not Small._open)
