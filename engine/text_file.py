"""Reading text files from any program: a byte order mark is dropped, and every line ends with \\n."""

from pathlib import Path

from engine.errors import UserError

ENCODING = "utf-8-sig"
"""UTF-8, with or without the byte order mark that Windows programs write at its start."""


def text_of(path: Path, name: str = "") -> str:
    """The text of a file. name: the file's name in messages; if empty, its own. Raises UserError if the file cannot be
    read or is not UTF-8."""
    name = name or path.name
    try:
        return path.read_text(ENCODING)
    except UnicodeDecodeError:
        raise UserError(f"{name} is not UTF-8 text.") from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}.") from None
