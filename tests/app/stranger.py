"""A program that attacks the server from an address of its own: it sends requests that no page would send."""

import json
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

import httpx

from tests.app.wire import PREFIX, config

RUN = ["Once", "none", {}, "", {}, 0, 0, 1, 0, 256, "", True, ""]
"""The values of the endpoint /run."""


class Stranger:
    def __init__(self, url: str, address: str) -> None:
        """address: one of this machine's own, 127.0.0.2 and up."""
        self.url, self.address = url, address
        # certificates take longer to read than most answers, and this machine shows none
        transport = httpx.HTTPTransport(verify=False, local_address=address)
        self.http = httpx.Client(base_url=url, timeout=60, transport=transport)
        self._dependencies = config(url)["dependencies"]

    def function(self, api_name: str) -> int:
        """Return the index of an event's function."""
        return next(one["id"] for one in self._dependencies if one["api_name"] == api_name)

    def post(self, path: str, body: object = None, **settings) -> httpx.Response:
        headers = {"content-type": "application/json", **settings.pop("headers", {})}
        content = json.dumps(body).encode("ascii")
        return self.http.post(PREFIX + path, content=content, headers=headers, **settings)

    def unread(self, count: int) -> list[httpx.Response]:
        """Ask for runs, and never read an answer. Returns the replies to the requests."""
        return [self.post("/call/run", {"data": RUN}) for _ in range(count)]

    def paused(self, session: str, event: int, values: list) -> None:
        """Make one step of a run under this session, and then close the page."""
        joined = self.post(
            "/queue/join",
            {
                "fn_index": event,
                "data": ['{"state": "idle"}', *values],
                "session_hash": session,
            },
        )
        if joined.status_code != 200:
            return
        where = f"{PREFIX}/queue/data"
        with self.http.stream("GET", where, params={"session_hash": session}) as stream:
            for line in stream.iter_lines():
                if '"process_completed"' in line or '"close_stream"' in line:
                    return

    def raw(self, head: str, parts: Iterable[bytes] = ()) -> tuple[socket.socket, int]:
        """Send ``head``, and then the parts until the server hangs up. Returns the connection, and how many bytes of
        the parts were sent."""
        where = urlsplit(self.url)
        made = socket.create_connection(
            (where.hostname, where.port), timeout=60, source_address=(self.address, 0)
        )
        sent = 0
        made.sendall(head.replace("\n", "\r\n").encode())
        try:
            for part in parts:
                made.sendall(part)
                sent += len(part)
        except OSError:
            pass
        return made, sent


def answered(connection: socket.socket) -> tuple[int, str]:
    """Return status and sentence of the answer on this connection; (0, "") if it was closed without an answer."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except OSError:
        pass
    head, _, body = got.partition(b"\r\n\r\n")
    if not head:
        return 0, ""
    return int(head.split()[1]), json.loads(body)["error"]


def said(answer: httpx.Response) -> str:
    """Return the sentence of a refusal. Fails if the answer is no refusal in one sentence."""
    assert answer.status_code >= 400, answer.text[:200]
    told = answer.json()["error"]
    assert isinstance(told, str) and told[-1] in ".?" and "\n" not in told, answer.text[:200]
    return told
