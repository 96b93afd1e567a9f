"""Lists the requests that a serving engine records in the folder that the host watches (docs/serving.md).

Only files of the folder itself are read.
"""

import heapq
import os
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import orjson

from app.growing import SILENT, Lines
from app.settings import watched_folder
from engine.errors import UserError
from engine.printable import one_line
from engine.trace import read_run_line

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,200}\.ndjson", re.ASCII)
MOST_LISTED = 50
EVERY = 1.0
"""Seconds between two looks at the folder."""
A_LOOK = 8_000_000
"""Most bytes that one look at the folder reads; the next look goes on from there."""


class Row:
    """A record in the list, with counts of the lines that have been read so far. wrong: whether it is no trace."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self._run: dict = {}
        self._steps = self._accepted = 0
        self._over = self.wrong = False

    def read_on(self, most: int) -> int:
        """Read and count the new lines, in at most ``most`` bytes. Returns how many bytes were read."""
        if self._over or self.wrong:
            return 0
        try:
            lines, size = self._lines.more(most)
            for line in lines:
                self._take(line)
        except (UserError, ValueError, KeyError, TypeError, AttributeError):
            self.wrong = True
            return 0
        return size

    def _take(self, line: bytes) -> None:
        if not self._run:
            self._run = read_run_line(line.decode("utf-8"))
            return
        entry = orjson.loads(line)
        if entry["kind"] == "summary":
            self._over = True
        else:
            self._steps += 1
            self._accepted += entry["nodes"]["status"].count("accepted")

    def told(self, name: str, written: float) -> dict | None:
        """Return the row for the page's script; None while there is no run line. written: when the file last changed,
        in seconds since the epoch."""
        if not self._run:
            return None
        drafter, recorded = self._run["drafter"], self._run.get("recorded", {})
        state = "done" if self._over else "running"
        if not self._over and time.time() - written > SILENT:
            state = "broken off"
        usual = datetime.fromtimestamp(written, UTC).isoformat()
        return {
            "name": name,
            "request": one_line(recorded.get("request", name), 80),
            "began": recorded.get("began", usual),
            "drafter": one_line(drafter.get("title") or drafter["key"], 60),
            "steps": self._steps,
            "accepted": self._accepted / self._steps if self._steps else None,
            "state": state,
        }


class RecordedFolder:
    """The newest records of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[str, Row] = {}
        self._told: list[dict] = []
        self._looked = -EVERY
        self._lock = threading.Lock()

    def told(self) -> list[dict]:
        """Return the rows of the recorded requests, the newest first; the folder is read at most once a second."""
        with self._lock:
            if time.monotonic() - self._looked >= EVERY:
                self._told = self._look()
                self._looked = time.monotonic()
            return self._told

    def _look(self) -> list[dict]:
        newest = heapq.nlargest(MOST_LISTED, self._files())
        self._rows = {name: self._rows.get(name) or Row(self._folder / name) for _, name in newest}
        left = A_LOOK
        for row in self._rows.values():
            left -= row.read_on(left) if left > 0 else 0
        rows = [self._rows[name].told(name, written) for written, name in newest]
        records = [row for row in rows if row is not None and not self._rows[row["name"]].wrong]
        return sorted(records, key=lambda row: row["began"], reverse=True)

    def _files(self) -> Iterator[tuple[float, str]]:
        """Yield (time of the last change, name) of each file that can be a record."""
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False).st_mtime, entry.name
        except OSError:
            return  # the folder, or a file of it, has gone

    def path(self, name: object) -> Path:
        """Return the path of this record. Raises UserError if the folder has no such file."""
        if isinstance(name, str) and NAME.fullmatch(name):
            path = self._folder / name
            if path.is_file() and not path.is_symlink():
                return path
        raise UserError("That record is no longer here.")


def recorded_requests(_: object = None) -> list[dict]:
    """Return the list of recorded requests for the page’s script; gradio passes an argument that is not used."""
    return FOLDER.told() if FOLDER else []


WATCHED = watched_folder()
FOLDER = RecordedFolder(WATCHED) if WATCHED else None
