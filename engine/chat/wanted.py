"""Whether visitors still wait for an opening model."""

from collections.abc import Callable
from contextvars import ContextVar

from engine.errors import UserError

LOOK = 0.2
"""Seconds between two checks whether somebody still waits."""
WANTED: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)
CLIENT: ContextVar[str] = ContextVar("client", default="")
"""The client of this context, if clients take turns; "" takes no turns."""


class Unwanted(UserError):
    """Nobody waits for the result any more."""


def check_wanted(leave: Callable[[], object] = lambda: None) -> None:
    """Raises Unwanted, after calling ``leave``, if nobody waits any more for the opening in this context."""
    if not WANTED.get()():
        leave()
        raise Unwanted("Nobody waits for this run any more.")
