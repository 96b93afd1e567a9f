"""A separate process for work that depends on a stranger's file, with limits on its time and memory.

Such a file is a program in all but name: a loop in a chat template, or a rule of a tokenizer that doubles the text,
would block or fill the whole server. The process is started when it is first needed, answers one request after another,
and is replaced if a request has crashed it.
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
    """Answers requests, one at a time.

    The process runs a Python program, which is started with two kinds of arguments: the file descriptor from which it
    reads requests, and its limits. The program reads and answers JSON, limits its memory with ``setrlimit``, and lets
    the system end it by SIGPROF if a request computes for too long.
    """

    def __init__(self, program: Path, seconds: float, bounds: tuple[float, ...], does: str) -> None:
        """seconds: the most seconds of computing for one request, passed to the program as the first of its limits.
        bounds: the other limits, passed after it. does: a clause that says what the process does, for an error
        message."""
        self._program, self._does = program, does
        self._seconds, self._bounds = seconds, bounds
        self._lock = threading.Lock()
        self._running: tuple[subprocess.Popen, Connection] | None = None
        os.register_at_fork(after_in_child=self._forked)

    def answer(self, wish: Mapping) -> dict:
        """The program's answer; {"refusal": the end of a sentence} if the request exceeded a limit or crashed the
        process."""
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
        """End the process if there is one."""
        with self._lock:
            if self._running is not None:
                self._end()

    def _forked(self) -> None:
        """After a fork, in the child: forget the parent's bounded process without ending it. The child starts a process
        of its own when it needs one."""
        self._lock, self._running = threading.Lock(), None
