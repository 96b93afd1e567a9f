"""Servers of the page for all test processes: the first process that needs a server starts it, and the end of the tests
closes it."""

import fcntl
import json
import os
import signal
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.app.serving import free_port, start

VISITORS = {
    "DRAFTSCOPE_GRAPH_MEMORY": "1 GB",
    "DRAFTSCOPE_CLIENT_RATE": "500",  # the visitors of all test processes come from one address
    "PIP_NO_INDEX": "1",  # nothing is downloaded, whatever a test sends
    "PIP_FIND_LINKS": "",
}
"""What visitors get, where the tests of the engine do without. What drafts cost is measured by the server of ``test_running``."""
PAGE = ("-m", "tests.app.quick_page")


def _place() -> Path:
    return Path(os.environ["DRAFTSCOPE_CACHE"])


@contextmanager
def _alone(note: str):
    """Let only one process at a time into this context. note: the name of its lock."""
    with (_place() / f"{note}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class SharedServer:
    url: str
    pid: int
    folder: str = ""
    """Where the models and records of ``host_server`` lie."""
    engine_port: int = 0
    """Where ``host_server`` lets visitors ask a serving engine."""

    def log(self) -> str:
        """Return all that the server of most tests has written to standard error so far."""
        return (_place() / "server.log").read_text("utf-8")


def shared_server() -> SharedServer:
    """Return the server of most tests, and start it unless it runs already."""

    def begin() -> SharedServer:
        with (_place() / "server.log").open("w") as errors:
            started = start(errors=errors, program=PAGE, **VISITORS)
        return SharedServer(started.url, started.pid)

    return _once("server.json", begin)


def host_server() -> SharedServer:
    """Return a server for tests of a host's settings, and start it unless it runs already. It lends a folder of models,
    ``models`` (``strangers_pair``), and engines on one port; it watches a folder of records, ``records``; its real chat
    model is a tiny model that is still to be fetched."""

    def begin() -> SharedServer:
        from presets import family  # imports torch, which the end of the tests does without
        from tests.app.tiny_family import families_in, pip
        from tests.pairs import strangers_pair

        folder, port = _place() / "host", free_port()
        (folder / "records").mkdir(parents=True)
        strangers_pair(folder / "models")
        for own in (_place() / "compiled", folder / "cache"):
            own.mkdir(exist_ok=True)
        (folder / "cache" / "compiled").symlink_to(_place() / "compiled")
        engines = [f"vllm://127.0.0.1:{port}/*", "vllm://127.0.0.1:1/a"]
        lent = [str(folder / "models"), family().parts["draft"], *engines]
        started = start(
            program=(*PAGE, "--watch", str(folder / "records")),
            DRAFTSCOPE_OWN_MODELS=",".join(lent),
            DRAFTSCOPE_TINY_FAMILIES=str(families_in(folder)),
            DRAFTSCOPE_CACHE=str(folder / "cache"),
            **pip(folder),
        )
        return SharedServer(started.url, started.pid, str(folder), port)

    return _once("host.json", begin)


def _once(note: str, begin: Callable[[], SharedServer]) -> SharedServer:
    with _alone(note):
        if not (file := _place() / note).exists():
            file.write_text(json.dumps(vars(begin())), "utf-8")
        return SharedServer(**json.loads(file.read_text("utf-8")))


def close_shared() -> None:
    """End the servers that these tests started."""
    for note in ("server.json", "host.json"):
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(json.loads((_place() / note).read_text("utf-8"))["pid"], signal.SIGTERM)
