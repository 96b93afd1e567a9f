"""A stand-in for ZeroGPU, for tests on a machine without a GPU: the service that lends devices runs on a
local port, and there is no device. The package ``spaces`` is the real one: it schedules, forks, pickles and
releases.

As a program, this file makes a run beyond the fence, as the page does, and prints the result.
"""

import importlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@contextmanager
def lender(quota: bool = True) -> Iterator[tuple[str, list[tuple[str, dict]]]]:
    """Yields the address of the service, and a list of the requests that it got: (path, parameters).

    quota: whether the visitor has any quota left.
    """
    asked: list[tuple[str, dict]] = []

    class Lender(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            parts = urlsplit(self.path)
            asked.append((parts.path, {k: v[0] for k, v in parse_qs(parts.query).items()}))
            lent = {"idle": False, "nvidiaIndex": 0, "nvidiaUUID": "none", "allowToken": "t"}
            body = json.dumps(lent if quota else {"left": 0, "wait": 60}).encode()
            self.send_response(200 if quota else 429)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Lender)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def without_a_device() -> None:
    """Import ``spaces`` as if there were no torch: it then leaves CUDA alone and does everything else."""
    sys.modules["torch"] = None  # type: ignore[assignment]
    importlib.import_module("spaces")
    del sys.modules["torch"]


def main() -> None:
    without_a_device()
    from app import live, warm, zero
    from app.fence import MAKERS

    warm.ready.set()
    values = json.loads(sys.argv[1])
    told: dict = {"home": os.getpid(), "on_zero": zero.on_zero()}
    updates = list(live.start("me", "watch", MAKERS["watch"], values))
    told["text"], told["state"], told["message"] = updates[-1]
    if told["state"] == "done":
        long = {**values, "max_new_tokens": 200}
        told["paused"] = list(live.start("me", "watch", MAKERS["watch"], long, single=True))[-1][0]
        seat = live.seats.get("me", "watch")
        told["torch"] = [type(v).__module__ for v in vars(seat.job._job).values()]
        told["stopped"] = live.stop("me", "watch")[0]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
