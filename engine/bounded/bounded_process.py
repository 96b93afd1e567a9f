"""A process of its own for work that a stranger's file decides about, with bounds on its time and memory.

Such work is a program in all but name: a loop in a chat template, or a rule of a tokenizer that doubles the text, would
block or fill the whole server. The process is started when it is first needed, answers one wish after another, and is
replaced when a wish has brought it down.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path


class BoundedProcess:
    """Answers wishes, one at a time.

    The program is started with the file descriptor that wishes come through, and its bounds. It reads and answers JSON,
    keeps to its bounds with ``setrlimit``, and lets the system end it by SIGPROF when a wish computes for too long.
    """

    def __init__(self, program: Path, seconds: float, bounds: tuple[float, ...], does: str) -> None:
        """seconds: of computing for one wish, the first of the program's arguments. bounds: the others. does: what the
        process does, for a sentence."""
        self._program, self._does = program, does
        self._seconds, self._bounds = seconds, bounds
        self._lock = threading.Lock()
        self._running: tuple[subprocess.Popen, Connection] | None = None
        os.register_at_fork(after_in_child=self._forked)

    def answer(self, wish: Mapping) -> dict:
        """The program's answer. {"refusal": the end of a sentence} if the wish went beyond the bounds."""
        written = json.dumps(wish, default=str).encode()
        with self._lock:
            if self._running is None:
                self._running = self._started()
            process, pipe = self._running
            try:
                pipe.send_bytes(written)
                return json.loads(pipe.recv_bytes())
            except (EOFError, OSError):
                self._end()
            if process.returncode == -signal.SIGPROF:
                return {"refusal": f"it computes for more than {self._seconds:g} seconds"}
            return {"refusal": f"it brought down the process in which {self._does}"}

    def _started(self) -> tuple[subprocess.Popen, Connection]:
        ours, theirs = multiprocessing.Pipe()
        limits = [str(bound) for bound in (self._seconds, *self._bounds)]
        process = subprocess.Popen(
            # -P: the program's folder holds modules named like Python's own
            [sys.executable, "-P", str(self._program), str(theirs.fileno()), *limits],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        return process, ours

    def _end(self) -> None:
        process, pipe = self._running
        self._running = None
        pipe.close()  # this ends the process, unless it has ended or is at work
        try:
            process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._running is not None:
                self._end()

    def _forked(self) -> None:
        """A forked process leaves its parent's process alone and starts its own."""
        self._lock, self._running = threading.Lock(), None
