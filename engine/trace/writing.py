"""Writes a trace: to a file that gets its name only when it is complete, or directly to a pipe or device."""

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from engine.errors import UserError


class Outlet:
    """A destination to which a text is written. The constructor checks whether it can be written, so that a mistake is
    found before the text is made.

    If the path is a link, the link is followed and stays in place. Lines for a pipe, a socket or a device are written
    as they come. Any other path is a file: it is written under another name in the same folder, and renamed when it is
    complete, so that no incomplete file ever has the final name.

    Raises UserError, one sentence, if nothing can be written.
    """

    def __init__(self, path: str | Path) -> None:
        if not str(path):
            raise UserError("The name of the file to write is empty.")
        self.name = Path(path).name or str(path)
        self._place = Path(os.path.realpath(path))
        self._through = _is_stream(self._place)
        if self._place.is_dir():
            raise self._refusal("it is a folder")
        if not self._through and not self._place.parent.is_dir():
            raise self._refusal("there is no such folder")
        if not os.access(self._place if self._through else self._place.parent, os.W_OK):
            raise self._refusal("permission denied")

    def write(self, lines: Iterable[str]) -> None:
        """Write all lines. Raises UserError if writing fails; an incomplete file is removed."""
        if self._through:
            self._write_through(lines)
        else:
            self._write_whole(lines)

    def _write_through(self, lines: Iterable[str]) -> None:
        try:
            with self._place.open("w", encoding="utf-8", newline="\n") as stream:
                for line in lines:
                    stream.write(line)
                    stream.flush()
        except OSError as error:
            raise self._refusal(error.strerror) from None

    def _write_whole(self, lines: Iterable[str]) -> None:
        temporary: Path | None = None
        try:
            descriptor, name = tempfile.mkstemp(
                dir=self._place.parent, prefix=f".{self._place.name}."
            )
            temporary = Path(name)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
            temporary.chmod(0o644)
            temporary.replace(self._place)
        except BaseException as error:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise self._refusal(error.strerror) from None
            raise

    def _refusal(self, why: str | None) -> UserError:
        return UserError(f"{self.name} cannot be written: {why}.")


def _is_stream(path: Path) -> bool:
    """Whether the path exists and is neither a file nor a folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write the lines to a file, pipe or device at this path (``Outlet``). Raises UserError if the path cannot be
    written."""
    Outlet(path).write(lines)
