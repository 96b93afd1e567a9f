"""Keeps track of visitors who wait for an opening model, and notices when nobody waits any more."""

from collections.abc import Callable
from contextvars import ContextVar

from engine.errors import UserError

LOOK = 0.2
"""Seconds between two looks at whether somebody still waits."""
WANTED: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)
CLIENT: ContextVar[str] = ContextVar("client", default="")
"""Who asks, where everybody has a share; "" has none."""


class Unwanted(UserError):
    """Whoever asked for it has left."""


def check_wanted(leave: Callable[[], object] = lambda: None) -> None:
    """Raises Unwanted, after ``leave``, if nobody waits any more for the opening in this context."""
    if not WANTED.get()():
        leave()
        raise Unwanted("Nobody waits for this run any more.")
