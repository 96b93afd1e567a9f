"""The file that stores the lines of a tuning as NDJSON. A line that was written only in part is removed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engine.errors import UserError

MOST_BYTES = 64 << 20


class TuningRecord:
    """The record of one tuning, opened or begun. lines: the lines in the file, without its first, the ``tuning`` line.

    Raises UserError for a file that holds something else, for a tuning of other models, prompts or settings or from
    another machine, and for a file that cannot be written.
    """

    def __init__(self, path: Path, header: Mapping) -> None:
        self._path = path
        self.lines: list[dict] = []
        try:
            whole = self._read()
            with path.open("ab") as file:
                file.truncate(whole)
        except OSError as error:
            raise self._refusal(error) from None
        if not whole:
            self.keep(header)
        elif self.lines.pop(0) != json.loads(json.dumps(header)):
            raise UserError(
                f"{path.name} holds a tuning of other models, prompts or settings, or from another machine; name another file."
            )

    def _read(self) -> int:
        """Read the file's whole lines into ``lines``; returns the number of their bytes. The rest of the file is a
        line that was cut off when a process ended suddenly."""
        if not self._path.exists():
            return 0
        if self._path.stat().st_size > MOST_BYTES:
            raise UserError(f"{self._path.name} is too large to be the record of a tuning.")
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        try:
            self.lines = [json.loads(line) for line in content[:whole].splitlines()]
            first = self.lines[0]["kind"] if self.lines else "tuning"
            known = all(isinstance(line["kind"], str) for line in self.lines)
        except (ValueError, KeyError, TypeError, RecursionError):
            first, known = "", False
        if (
            first != "tuning"
            or not known
            or (content and not whole and not content.startswith(b'{"kind"'))
        ):
            raise UserError(f"{self._path.name} is no record of a tuning; name another file.")
        return whole

    def keep(self, line: Mapping) -> None:
        """Append a line to the record. Raises UserError if it cannot be written; the earlier lines stay in the
        file."""
        content = (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode()
        try:
            with self._path.open("ab") as file:
                before = file.tell()
                file.write(content)
        except OSError as error:
            with suppress(OSError, NameError):
                os.truncate(self._path, before)  # a torn line would spoil the next
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> UserError:
        return UserError(
            f"{self._path.name} cannot be written: {error.strerror}. What is in it stays."
        )
