"""The program that fetches a model beside a server (``engine.parts.fetched_model``), at low priority and with little
memory.

It reads {"source", "root"} as one line of JSON. It writes lines [task, share] while it works, and {"problem"} if it
fails. SIGTERM, and the end of the process that started it, cancel it; no unfinished model stays behind.
"""

import json
import os
import signal
import sys
from pathlib import Path

from engine.errors import UserError
from engine.parts.fetched_model import Source, fetch

NICE = 10
LEAST = 0.005
"""The least change of a task's share between two lines."""


def main() -> int:
    """Fetch the model. Returns the exit code: 0, or 1 if there is a problem."""
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.nice(NICE)
    order = json.loads(sys.stdin.readline())
    last = ("", 0.0)

    def tell(task: str, share: float) -> None:
        nonlocal last
        if task != last[0] or share - last[1] >= LEAST or share == 1.0:
            last = (task, share)
            _write([task, round(share, 4)])

    source, root = Source.read(order["source"]), Path(order["root"])
    try:
        fetch(source, root, tell, lambda: os.getppid() == parent)
    except UserError as error:
        _write({"problem": str(error)})
        return 1
    return 0


def _write(line: object) -> None:
    try:
        print(json.dumps(line), flush=True)
    except BrokenPipeError:
        sys.exit(1)  # the server is gone


if __name__ == "__main__":
    sys.exit(main())
