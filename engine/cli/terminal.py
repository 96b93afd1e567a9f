"""Writing to the terminal: text on standard output, everything else on standard error. Either may be closed."""

import codecs
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from engine.errors import UserError
from engine.printable import one_line, printable

STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


def write(text: str) -> None:
    """Write text to standard output at once; do nothing if it is closed. Control characters are not written to a
    terminal. Raises ReaderGone, and UserError if the text cannot be written."""
    stream = sys.stdout
    if stream is None or not text:
        return
    try:
        stream.write(printable(text) if stream.isatty() else text)
        stream.flush()
    except BrokenPipeError:
        _let_go(stream)
        raise ReaderGone from None
    except OSError as error:
        _let_go(stream)
        raise UserError(f"Standard output cannot be written: {error.strerror}.") from None


def _let_go(stream: TextIO) -> None:
    """Redirect a broken stream to nowhere, because Python flushes it once more at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def say(line: str) -> None:
    """Write one line to standard error; do nothing if it is closed."""
    _on_error(f"{one_line(line)}\n")


def _on_error(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass  # there is nobody to tell


class Bar:
    """Shows the progress of slow tasks: a bar on a terminal, otherwise one line per task."""

    WIDTH = 24

    def __init__(self) -> None:
        self._task = ""
        self._live = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, task: str, share: float, left: str = "") -> None:
        """Show the state of a task. share: the share of it that is done, from 0 to 1. left: the remaining time, in
        words."""
        if self._live:
            done = round(share * self.WIDTH)
            bar = "█" * done + "·" * (self.WIDTH - done)
            left = left and f", {left} left"
            _on_error(f"\r\x1b[K{one_line(task, 120)} {bar} {share:4.0%}{left}")
        elif task != self._task:
            say(f"{task} ...")
        self._task = task

    def close(self) -> None:
        if self._live and self._task:
            _on_error("\r\x1b[K")
        self._task = ""


class Interrupts:
    """The signal that asked this process to stop, as its number; None if there was none."""

    signal: int | None = None


@contextmanager
def listening() -> Iterator[Interrupts]:
    """A context that notes the first Ctrl-C, SIGTERM or SIGHUP, so that work can end between two steps. A second signal
    ends the process at once."""
    interrupts, before = Interrupts(), {}
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return

    def note(number: int, frame: object) -> None:
        if interrupts.signal is not None:
            raise KeyboardInterrupt
        interrupts.signal = number

    for number in STOPPING:
        before[number] = signal.signal(number, note)
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def as_unicode(argument: str) -> str:
    """A command-line argument decoded as UTF-8, even if Python decoded it by another locale."""
    if not any("\ud800" <= character <= "\udfff" for character in argument):
        return argument
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        return argument


def speak_unicode() -> None:
    """Make standard output and error accept every character: ASCII streams write UTF-8, others escape what they cannot
    write."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or not hasattr(stream, "reconfigure"):
            continue
        if codecs.lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        else:
            stream.reconfigure(errors="backslashreplace")
