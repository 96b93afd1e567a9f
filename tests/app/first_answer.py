"""How soon after a press of Measure the Tune tab gives a first answer, with its own prompts and the embedded models:
``python -m tests.app.first_answer`` prints it.

The clock starts when Measure is pressed and stops when the server sends the answer; the models are open before. Beside it
stands the time that the server spent on processors meanwhile, which a busy machine does not lengthen.
"""

import os
import tempfile
import time
from pathlib import Path

from tests.app.serving import Server, serving
from tests.app.wire import Wire

AIM = 30.0  # seconds


def first_answer(server: Server, wire: Wire) -> tuple[float, float]:
    """Return the seconds until the first answer, by the clock and on processors. Then the tuning is stopped."""
    began, spent = time.monotonic(), _on_processors(server.pid)
    for record, state, message in wire.press("measure"):
        if state == "error":
            raise RuntimeError(message)
        if record is not None and '"kind":"answer"' in record:
            break
    taken = time.monotonic() - began, _on_processors(server.pid) - spent
    wire.leave()
    return taken


def _on_processors(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    with tempfile.TemporaryDirectory() as empty, serving(DRAFTSCOPE_CACHE=empty) as server:
        Wire(server.url).ready()
        for state in ("cold caches", "warm"):
            wall, processors = first_answer(server, Wire(server.url))
            told = f"{wall:.1f} s, {processors:.1f} s on processors (aim {AIM:.0f} s)"
            print(f"{state}: first answer after {told}")


if __name__ == "__main__":
    main()
