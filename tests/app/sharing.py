"""Servers of the page for all test processes: the first that needs one starts it, the end of the tests closes it."""

import fcntl
import json
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.app.serving import start

VISITORS = {
    "DRAFTSCOPE_GRAPH_MEMORY": "1 GB",
    "PIP_NO_INDEX": "1",  # nothing is downloaded, whatever a test sends
    "PIP_FIND_LINKS": "",
}
"""What visitors get, where the tests of the engine do without. What drafts cost is measured by the server of ``test_running``."""
FEW_ROUNDS = """
import os
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported
import app.speed
app.speed.ENOUGH = 0.0
import app.__main__
"""
"""The page, whose background measures each run's speed in three rounds, not until they settle: that would take a core after every
run of a test."""


def _place() -> Path:
    return Path(os.environ["DRAFTSCOPE_CACHE"])


@contextmanager
def _alone():
    """One process at a time."""
    with (_place() / "server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class SharedServer:
    url: str
    pid: int
    folder: str = ""
    """Where the models and records of ``host_server`` lie."""

    def log(self) -> str:
        """All that the server of most tests has written to standard error so far."""
        return (_place() / "server.log").read_text("utf-8")


def shared_server() -> SharedServer:
    """The server of most tests, started unless it runs already."""
    with _alone():
        if not (note := _place() / "server.json").exists():
            with (_place() / "server.log").open("w") as errors:
                started = start(errors=errors, program=("-c", FEW_ROUNDS), **VISITORS)
            _write(note, url=started.url, pid=started.pid)
        return _read(note)


def host_server() -> SharedServer:
    """A server whose host lends a folder of models, ``models`` (``strangers_pair``), watches a folder of records, ``records``,
    and has switched the real chat model off; started unless it runs already."""
    from tests.pairs import strangers_pair  # imports torch, which the end of the tests does without

    with _alone():
        if not (note := _place() / "host.json").exists():
            folder = _place() / "host"
            (folder / "records").mkdir(parents=True)
            strangers_pair(folder / "models")
            started = start(
                program=("-m", "app", "--watch", str(folder / "records")),
                DRAFTSCOPE_OWN_MODELS=str(folder / "models"),
                DRAFTSCOPE_RESIDENT_MODELS="2",
                DRAFTSCOPE_REAL_MODELS="off",
            )
            _write(note, url=started.url, pid=started.pid, folder=str(folder))
        return _read(note)


def _write(note: Path, **server) -> None:
    note.write_text(json.dumps(server), "utf-8")


def _read(note: Path) -> SharedServer:
    return SharedServer(**json.loads(note.read_text("utf-8")))


def close_shared() -> None:
    """End the servers that were started."""
    for name in ("server.json", "host.json"):
        if (note := _place() / name).exists():
            with suppress(ProcessLookupError):
                os.kill(_read(note).pid, signal.SIGTERM)
