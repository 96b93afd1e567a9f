"""Writes log lines: JSON for machines, or words for a person at a terminal. Prompts are left out by default.

``DRAFTSCOPE_LOG`` = json | text (text on a terminal unless set), ``DRAFTSCOPE_LOG_LEVEL`` = info and
so on, ``DRAFTSCOPE_LOG_PROMPTS=1`` for a host who may read what visitors write.
"""

import hashlib
import logging
import os
import secrets
import sys
import time
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter

from engine.printable import printable

_SALT = secrets.token_bytes(16)
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}
"""The fields that every log record has; all others were given with ``extra``."""


class Words(logging.Formatter):
    """Formats a line for a person: the message, then each extra field as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        extra = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        pairs = " ".join(f"{name}={value}" for name, value in extra.items())
        return printable(f"{super().format(record)} {pairs}".rstrip())


class Sparing(logging.Filter):
    """Lets each kind of warning or error through at most ``most`` times in ``seconds``, because a stranger can cause
    such lines at will. The first line after that says how many were left out."""

    def __init__(self, most: int = 10, seconds: float = 60.0) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds
        self._counts: dict[tuple, tuple[float, int]] = {}
        """Kind of line -> when its count began, and the count."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = (
            record.name,
            str(record.msg),
            str(record.args) if len(str(record.args)) < 99 else "",
        )
        now = time.monotonic()
        since, count = self._counts.get(kind, (now, 0))
        if now - since > self._seconds:
            if count > self._most:
                record.left_out = count - self._most
            since, count = now, 0
        if kind not in self._counts and len(self._counts) > 999:
            self._counts.clear()
        self._counts[kind] = since, count + 1
        return count < self._most


class Printable:
    """A stream that writes control characters as visible codes, also in the output of other code, such as
    tracebacks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(printable(text))
        return len(text)

    def __getattr__(self, name: str):
        return getattr(self._stream, name)


def configure() -> None:
    """Send every log line to standard error, and keep control characters out of both streams."""
    as_json = os.environ.get("DRAFTSCOPE_LOG", "text" if sys.stderr.isatty() else "json") == "json"
    sys.stdout, sys.stderr = Printable(sys.stdout), Printable(sys.stderr)
    handler = logging.StreamHandler(sys.stderr)
    fields = {"asctime": "time", "levelname": "level", "name": "logger", "message": "event"}
    as_lines = JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields=fields)
    sparing = Sparing()
    handler.addFilter(sparing)
    logging.getLogger("uvicorn.error").addFilter(sparing)  # it has a handler of its own
    handler.setFormatter(as_lines if as_json else Words("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    level = os.environ.get("DRAFTSCOPE_LOG_LEVEL", "info").upper()
    logging.getLogger("draftscope").setLevel(level if level in _LEVELS else "INFO")


_LEVELS = logging.getLevelNamesMapping()


def visitor(session: str | None) -> str:
    """Return a short name for a browser session, from which nobody can find the session. It changes with every start of
    the server."""
    return hashlib.blake2s((session or "").encode(), key=_SALT, digest_size=4).hexdigest()


def prompt(given: object) -> dict[str, str]:
    """Return the prompt as an extra field of a log line; {} unless the host wants prompts in the log."""
    logged = os.environ.get("DRAFTSCOPE_LOG_PROMPTS") == "1"
    return {"prompt": given} if logged and isinstance(given, str) else {}
