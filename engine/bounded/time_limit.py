"""A time limit for strangers' code that runs in this process."""

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from engine.errors import UserError
from engine.printable import one_line

PATIENCE = 20.0
"""The most seconds that one call may take of a method that comes from outside this repository."""
AGAIN = 1.0
"""The seconds after which TooLong is raised once more, in case the stranger's code has caught it and goes on."""

T = TypeVar("T")


class TooLong(BaseException):
    """Raised by a timer in the thread that runs a stranger's code, at whatever line this thread has reached."""


def within(key: str, call: str, work: Callable[[], T]) -> T:
    """The result of ``work``, a stranger's code. Raises UserError if the code raises anything, even SystemExit, or
    takes longer than ``PATIENCE``. Code that loops in Python is stopped; code that waits in C is not. key: the key of
    the method to which the code belongs, for the message. call: the name of the call, for the message."""
    clock = _Clock(threading.get_ident())
    try:
        with clock:
            return work()
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if clock.fired:
            raise UserError(
                f"The method {key} took more than {PATIENCE:.0f} seconds in {call}, and was stopped."
            ) from None
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UserError(f"The method {key} failed in {call}: {reason}.") from error


class _Clock:
    """A context that raises TooLong in its thread after ``PATIENCE``, and again every ``AGAIN`` seconds until the
    thread leaves it."""

    def __init__(self, thread: int) -> None:
        self._thread, self._over, self.fired = ctypes.c_ulong(thread), False, False
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._arm(PATIENCE)

    def _arm(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def _fire(self) -> None:
        with self._lock:
            if not self._over:
                self.fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, ctypes.py_object(TooLong))
                self._arm(AGAIN)

    def __exit__(self, kind, error, trace) -> None:
        while not self._over:
            with suppress(TooLong):  # TooLong may already be on its way
                with self._lock:
                    self._over = True
                self._timer.cancel()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, None)
