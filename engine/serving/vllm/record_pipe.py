"""Hands steps to the process that writes the records. Posting never waits: a thread sends what lies in a bounded line.

The process has the lowest priority, so that it takes what time the engine leaves, and outlives a worker that is killed: it writes what
it has read to the end.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.serving.vllm.recorder_plugin import RecordSettings

MOST_WAITING = 512
"""Steps of a batch that may wait to be sent."""
REPOSITORY = Path(__file__).parents[3]


class RecordPipe:
    """broken: why nothing is sent any more, "" while all is well."""

    def __init__(self, settings: RecordSettings, about: dict) -> None:
        """Begins the process. Raises OSError."""
        self.broken = ""
        os.makedirs(settings.folder, mode=0o700, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engine.serving.vllm.record_process"],
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": _path(), "TOKENIZERS_PARALLELISM": "false"},
            start_new_session=True,  # Ctrl-C is for the server
        )
        self._line: queue.Queue = queue.Queue(MOST_WAITING)
        self._line.put((None, (settings.folder, settings.most_bytes, about)))
        threading.Thread(target=self._send, name="draftscope-record", daemon=True).start()

    def post(self, copied, parcel: dict) -> bool:
        """Send this soon. copied: an event after which the tensors in the parcel are on the CPU; None where they are. False where too much waits
        already; then it is not sent."""
        try:
            self._line.put_nowait((copied, parcel))
        except queue.Full:
            return False
        return True

    def _send(self) -> None:
        try:
            while True:
                copied, parcel = self._line.get()
                if copied is not None:
                    copied.synchronize()
                pickle.dump(_plain(parcel), self._process.stdin, protocol=5)
                self._process.stdin.flush()
        except (OSError, ValueError) as error:
            self.broken = f"its writer has ended ({error})"


def _plain(parcel: dict | tuple) -> dict | tuple:
    """The parcel with arrays in the place of tensors."""
    if isinstance(parcel, tuple):
        return parcel
    return {
        name: value.numpy() if hasattr(value, "numpy") else value for name, value in parcel.items()
    }


def _path() -> str:
    return os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
