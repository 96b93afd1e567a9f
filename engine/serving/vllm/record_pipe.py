"""Hands steps to the process that writes the records. Posting never waits: bytes that the pipe does not take at once
are sent with a later step.

The engine's process gets no busy second thread, for which it would wait again and again where processors are few. The
writing process has the lowest priority, so that it runs in time that the engine leaves. It outlives a worker that is
killed, and writes all that it has read.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

MOST_WAITING = 512
"""The most steps of a batch that may wait to be sent."""
PIPE_BYTES = 1 << 20
REPOSITORY = Path(__file__).parents[3]


class RecordPipe:
    """The pipe to the writing process. broken: the reason why nothing is sent any more; "" while all is well."""

    def __init__(self, folder: str, most_bytes: int, about: dict) -> None:
        """Start the process that writes the records into the folder. most_bytes: see ``RecordSettings``. Raises
        OSError."""
        self.broken = ""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engine.serving.vllm.record_process"],
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": _path(), "TOKENIZERS_PARALLELISM": "false"},
            process_group=0,  # Ctrl-C is for the server; in a session of its own, its priority would not count beside vLLM's
        )
        self._pipe = self._process.stdin.fileno()
        os.set_blocking(self._pipe, False)
        with suppress(OSError):  # the system's default size is enough, too
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._waiting: deque = deque([(None, (folder, most_bytes, about))])
        self._unsent = memoryview(b"")
        self._lock = threading.Lock()
        self._left: threading.Thread | None = None
        self._flush()

    def post(self, copied, parcel: dict) -> bool:
        """Send a parcel soon. Returns False, and drops the parcel, if too many are waiting. copied: an event after
        which the parcel's tensors are on the CPU; None if they are there already. Raises OSError if the process has
        ended."""
        if len(self._waiting) >= MOST_WAITING:
            return False
        self._waiting.append((copied, parcel))
        if self._lock.acquire(blocking=False):
            try:
                self._flush()
            finally:
                self._lock.release()
        left = self._waiting or self._unsent
        if left and (self._left is None or not self._left.is_alive()):
            self._left = threading.Thread(target=self._send_left, daemon=True)
            self._left.start()
        return True

    def _flush(self) -> None:
        """Send as much as the pipe takes and the device has finished."""
        while True:
            if not self._unsent:
                if not self._waiting or not _there(self._waiting[0][0]):
                    return
                parcel = _plain(self._waiting.popleft()[1])
                self._unsent = memoryview(pickle.dumps(parcel, protocol=5))
            try:
                sent = os.write(self._pipe, self._unsent)
            except BlockingIOError:
                return
            self._unsent = self._unsent[sent:]

    def _send_left(self) -> None:
        """Send the waiting parcels, even if no further step comes."""
        try:
            while self._waiting or self._unsent:
                time.sleep(0.1)
                with self._lock:
                    self._flush()
        except OSError as error:
            self.broken = f"its writer has ended ({error})"


def _there(copied) -> bool:
    return copied is None or copied.query()


def _plain(parcel: dict | tuple) -> dict | tuple:
    """The parcel with its tensors as arrays."""
    if isinstance(parcel, tuple):
        return parcel
    return {
        name: value.numpy() if hasattr(value, "numpy") else value for name, value in parcel.items()
    }


def _path() -> str:
    return os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
