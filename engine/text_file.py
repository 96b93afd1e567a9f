"""Reads text files that any program may have written: a byte order mark is dropped, and every line ends with a line
feed."""

from pathlib import Path

from engine.errors import UserError

ENCODING = "utf-8-sig"
"""The encoding of the files: UTF-8, with or without the byte order mark that Windows programs put at the start of a
file."""


def text_of(path: Path, name: str = "") -> str:
    """The text of a file. name: how messages call the file; if empty, by its own name. Raises UserError if the file
    cannot be read or is not UTF-8."""
    name = name or path.name
    try:
        return path.read_text(ENCODING)
    except UnicodeDecodeError:
        raise UserError(f"{name} is not UTF-8 text.") from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}.") from None
