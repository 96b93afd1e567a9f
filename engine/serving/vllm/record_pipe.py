"""Sends the data of steps to the process that writes the records. Sending never waits: bytes for which the pipe has no
room are sent with a later step.

vLLM's process gets no busy second thread, because on a machine with few processors vLLM would often have to wait for
that thread. The writing process has the lowest priority, so it runs only when vLLM leaves a processor idle. If the
vLLM worker is killed, the writing process lives on until it has written everything that it has received.
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
"""The most parcels (data of one step of a batch) that may wait to be sent."""
PIPE_BYTES = 1 << 20
REPOSITORY = Path(__file__).parents[3]


class RecordPipe:
    """The pipe to the process that writes the records. broken: the reason why nothing is sent any more; "" while the
    pipe works."""

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
        """Queue a parcel and send it soon. Returns False, and drops the parcel, if too many are waiting. copied: a
        CUDA event after which the parcel's tensors are on the CPU; None if they are there already. Raises OSError if
        the writing process has ended."""
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
        """Send waiting parcels. Stop when the pipe is full, or when the next parcel's tensors are still being copied
        from the GPU."""
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
        """Keep sending until no parcel waits, so that the last parcels are sent even if no further step comes; runs in
        a thread."""
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
    """The parcel with NumPy arrays in place of tensors."""
    if isinstance(parcel, tuple):
        return parcel
    return {
        name: value.numpy() if hasattr(value, "numpy") else value for name, value in parcel.items()
    }


def _path() -> str:
    return os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
