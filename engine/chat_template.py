"""Renders conversations with a chat template.

A template comes with a model and is a program: if this process rendered it, a loop in it would block
the whole server. So a process of its own renders templates. That process is started when it is first
needed, serves one rendering after another, and is replaced when a template has brought it down.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from engine.errors import UserError

PROGRAM = Path(__file__).with_name("template_process.py")


@dataclass(frozen=True)
class Bounds:
    """Bounds on one rendering: seconds of computing, megabytes of address space, characters of the text."""

    seconds: float = 3.0
    megabytes: int = 1024
    characters: int = 1_000_000


class Renderer:
    """Renders templates, one at a time."""

    def __init__(self, bounds: Bounds = Bounds()) -> None:
        self._bounds = bounds
        self._lock = threading.Lock()
        self._running: tuple[subprocess.Popen, Connection] | None = None

    def render(
        self,
        template: str,
        turns: Sequence[Mapping[str, str]],
        special_tokens: Mapping[str, object],
        asks: bool,
    ) -> str:
        """The rendered text. asks: the text ends where the answer begins.

        Raises UserError, which says what is wrong with the template as the end of a sentence.
        """
        wish = {
            **special_tokens,
            "conversations": [list(turns)],
            "chat_template": template,
            "add_generation_prompt": asks,
        }
        answer = self._answer(json.dumps(wish, default=str).encode())
        if "text" not in answer:
            raise UserError(answer["refusal"])
        return answer["text"]

    def _answer(self, wish: bytes) -> dict[str, str]:
        with self._lock:
            if self._running is None:
                self._running = self._started()
            process, pipe = self._running
            try:
                pipe.send_bytes(wish)
                return json.loads(pipe.recv_bytes())
            except (EOFError, OSError):
                self._end()
            if process.returncode == -signal.SIGPROF:
                return {"refusal": f"it computes for more than {self._bounds.seconds:g} seconds"}
            return {"refusal": "it brought down the process in which templates are rendered"}

    def _started(self) -> tuple[subprocess.Popen, Connection]:
        ours, theirs = multiprocessing.Pipe()
        bounds = self._bounds
        limits = [str(one) for one in (bounds.seconds, bounds.megabytes, bounds.characters)]
        process = subprocess.Popen(
            # -P: the program's folder holds modules named like Python's own
            [sys.executable, "-P", str(PROGRAM), str(theirs.fileno()), *limits],
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
            process.wait(self._bounds.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._running is not None:
                self._end()

    def _forked(self) -> None:
        """A forked process leaves its parent's rendering process alone and starts its own."""
        self._lock, self._running = threading.Lock(), None


renderer = Renderer()
os.register_at_fork(after_in_child=renderer._forked)
