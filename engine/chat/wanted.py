"""Whether visitors still wait for a model that is being opened."""

from collections.abc import Callable
from contextvars import ContextVar

from engine.errors import UserError

LOOK = 0.2
"""Seconds between two checks whether somebody still waits."""
WANTED: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)
CLIENT: ContextVar[str] = ContextVar("client", default="")
"""The client for whom the code in this context runs, where clients take turns; "" if the code need not take turns."""


class Unwanted(UserError):
    """Nobody waits for the result any more."""


def check_wanted(leave: Callable[[], object] = lambda: None) -> None:
    """If nobody waits any more for what the code in this context does, call ``leave`` and raise Unwanted."""
    if not WANTED.get()():
        leave()
        raise Unwanted("Nobody waits for this run any more.")
