"""Serves the page as its visitors get it, from the real server in a process of its own."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Server:
    url: str
    process: subprocess.Popen

    @property
    def pid(self) -> int:
        return self.process.pid


def start(
    patience: float = 600.0,
    errors: IO | None = None,
    port: int | None = None,
    program: Sequence[str] = ("app.py",),
    **environment: str,
) -> Server:
    """Run app.py on this port, else on a free one, until it answers. errors: a file for its standard error. program:
    Python's arguments in the place of app.py. Raises RuntimeError if it does not come up."""
    port = port or free_port()
    url, began = f"http://127.0.0.1:{port}", time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *program],
        cwd=REPOSITORY,
        env={**os.environ, "GRADIO_SERVER_PORT": str(port), **environment},
        stdout=subprocess.DEVNULL,
        stderr=errors,
    )
    while not _answers(url):
        if process.poll() is not None or time.monotonic() - began > patience:
            process.kill()
            raise RuntimeError(f"app.py did not come up (exit code {process.poll()})")
        time.sleep(0.1)
    return Server(url, process)


@contextmanager
def serving(**settings):
    """Yield a server as from ``start``, and close it at the end of the context."""
    server = start(**settings)
    try:
        yield server
    finally:
        server.process.terminate()
        try:
            server.process.wait(20)
        except subprocess.TimeoutExpired:
            server.process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
