"""One server of the page for all test processes: the first that needs it starts it, the end of the tests closes it."""

import fcntl
import json
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.app.serving import start

VISITORS = {
    "DRAFTSCOPE_MEASURE": "1",
    "DRAFTSCOPE_GRAPH_MEMORY": "1 GB",
    "PIP_NO_INDEX": "1",  # nothing is downloaded, whatever a test sends
    "PIP_FIND_LINKS": "",
}
"""What visitors get, where the tests of the engine do without."""


def _note() -> Path:
    return Path(os.environ["DRAFTSCOPE_CACHE"]) / "server.json"


def _log() -> Path:
    return Path(os.environ["DRAFTSCOPE_CACHE"]) / "server.log"


@contextmanager
def _alone():
    """One process at a time."""
    with _note().with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class SharedServer:
    url: str
    pid: int

    def log(self) -> str:
        """All that it has written to standard error so far."""
        return _log().read_text("utf-8")


def shared_server() -> SharedServer:
    """The server that all test processes share, started unless it runs already."""
    with _alone():
        if not _note().exists():
            with _log().open("w") as errors:
                started = start(errors=errors, **VISITORS)
            _note().write_text(json.dumps({"url": started.url, "pid": started.pid}), "utf-8")
        return SharedServer(**json.loads(_note().read_text("utf-8")))


def close_shared() -> None:
    """End the shared server, if there is one."""
    if _note().exists():
        with suppress(ProcessLookupError):
            os.kill(json.loads(_note().read_text("utf-8"))["pid"], signal.SIGTERM)
