"""The page as its visitors get it, from the real server in a process of its own."""

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
QUIET_LOAD = 1.0
"""Load average above which a machine is too busy for a time limit to mean anything."""


@dataclass(frozen=True)
class Server:
    url: str
    seconds: float
    """From the start of the process to the first answer."""
    pid: int
    quiet: bool
    """Whether the machine was idle enough to be held to a time limit."""
    process: subprocess.Popen
    errors: IO | None
    """Its standard error, where somebody wants that."""


def quiet() -> bool:
    """False beside other tests (pytest -n), which are about to load the machine."""
    return "PYTEST_XDIST_WORKER" not in os.environ and os.getloadavg()[0] < QUIET_LOAD


@contextmanager
def serving(
    patience: float = 600.0,
    errors: IO | None = None,
    port: int | None = None,
    program: Sequence[str] = ("app.py",),
    **environment: str,
):
    """Run app.py on this port, else on a free one; yields a Server. errors: a file for its standard
    error. program: Python's arguments in the place of app.py."""
    port = port or free_port()
    url, calm, began = f"http://127.0.0.1:{port}", quiet(), time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *program],
        cwd=REPOSITORY,
        env={**os.environ, "GRADIO_SERVER_PORT": str(port), **environment},
        stdout=subprocess.DEVNULL,
        stderr=errors,
    )
    try:
        while not _answers(url):
            if process.poll() is not None or time.monotonic() - began > patience:
                raise RuntimeError(f"app.py did not come up (exit code {process.poll()})")
            time.sleep(0.1)
        yield Server(url, time.monotonic() - began, process.pid, calm, process, errors)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


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
