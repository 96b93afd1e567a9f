"""Shows a record that a serving engine may still be writing, in the place of a visitor's run.

Each line is checked like a line of a trace that a visitor brings.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from app import live, traces
from app.seats import Seat
from app.settings import LIMITS
from engine.errors import UserError
from engine.serving.vllm.line_totals import LineTotals
from engine.trace import LineReader, to_line

LOOK = 0.25
"""Seconds between two looks at a record that grows."""
SILENT = 60.0
"""Seconds without a new line after which a record without a summary counts as broken off."""
FOLLOWED = replace(LIMITS, run_seconds=86_400)
"""The limits while a record is followed. Following computes nothing, so it may go on for a day."""
SAID = "A request that was recorded in a serving engine; nothing runs here."
BROKEN_OFF = "Its writer ended before the request did; this is what it wrote."


def _open(path: Path) -> int:
    """Return a file descriptor of the record. Raises UserError if it cannot be opened, as a symbolic link cannot."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise UserError("That record is no longer here.") from None


class Lines:
    """Reads the complete lines of a file that may grow."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def more(self, most: int) -> tuple[list[bytes], int]:
        """Return the complete lines in the next ``most`` bytes, and how many bytes were read. Raises UserError."""
        descriptor = _open(self._path)
        try:
            data = os.pread(descriptor, most, self._offset)
        except OSError:
            raise UserError("That record cannot be read.") from None
        finally:
            os.close(descriptor)
        *lines, rest = data.split(b"\n")
        self._offset += len(data) - len(rest)
        return lines, len(data)


class Growing:
    """A record in the place of a run (``app.seats.Job``). It ends with its summary, or after SILENT seconds without a
    new line."""

    def __init__(self, path: Path) -> None:
        """Read the lines that are there already. Raises UserError if they are no trace, or there are none."""
        self._lines, self._path = Lines(path), path
        self._reader, self._totals = LineReader(), LineTotals()
        self._summary = ""
        self._header = "".join(self._new())
        if not self._header and not self._summary:
            raise UserError("Nothing of that request has been written yet.")

    @property
    def over(self) -> bool:
        return self._reader.over

    def header(self) -> str:
        return self._header

    def steps(self) -> Iterator[str]:
        while not self.over:
            silent = True
            for line in self._new():
                silent = False
                yield line
            if silent and time.time() - self._path.stat().st_mtime > SILENT:
                return
            if silent and not self.over:
                time.sleep(LOOK)
                yield ""

    def _new(self) -> Iterator[str]:
        """Yield the new lines, but keep the summary in ``_summary``. Raises UserError for an invalid line."""
        lines, _ = self._lines.more(LIMITS.trace_bytes)
        for line in lines:
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError:
                raise UserError("That record is not UTF-8 text.") from None
            entry = self._reader.read(text)
            if entry["kind"] == "summary":
                self._summary = text + "\n"
                return
            if entry["kind"] == "step":
                self._totals.add(entry)
            yield text + "\n"

    def cancel(self) -> None:
        pass

    def summary(self) -> str:
        return self._summary or to_line(self._totals.summary("cancelled"))


class OwnTime:
    """The turns (``app.turns``) of a job that computes nothing here: it waits for no run, and no run waits for it."""

    place = 0

    def enter(self, client: str = "") -> "OwnTime":
        return self

    def told(self) -> str:
        return ""

    def step(self, work: Callable[[], str | None]) -> str | None:
        return work()

    def wake(self) -> None:
        pass

    def leave(self) -> None:
        pass


def show(
    session: str, tab: str, path_of: Callable[[object], Path], name: object
) -> Iterator[live.Update]:
    """Show a record in the place of the visitor's run: a finished record at once, another as it grows.

    path_of: returns the path of the record with this name, or raises UserError.
    """
    try:
        path = path_of(name)
        job = Growing(path)
        if job.over:
            yield traces.show(session, tab, traces.check(job.header() + job.summary()), SAID)
            return
        broken = time.time() - path.stat().st_mtime > SILENT
        if broken:
            text = traces.check(job.header() + job.summary())
            yield traces.show(session, tab, text, f"{SAID} {BROKEN_OFF}")
            return
        seat = live.seats.put(session, tab, Seat(job, turns=OwnTime(), limits=FOLLOWED))
    except OSError:
        yield None, "error", "That record is no longer here."
        return
    except UserError as error:
        yield None, "error", str(error)
        return
    yield from seat.advance()
