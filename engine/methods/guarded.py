"""Methods from outside: what a stranger's drafter does wrong ends the run with one sentence, never the process."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from engine.core.drafter import Drafter
from engine.core.tree import DraftTree
from engine.errors import UserError
from engine.finding import classes, outside_module
from engine.printable import one_line

PATIENCE = 20.0
"""Seconds that a drafter from outside may take for one call."""

T = TypeVar("T")


class TooLong(BaseException):
    """Raised in the thread that runs a stranger's code, wherever that code is."""


def outside_drafter(folder: Path, known: dict[str, type[Drafter]]) -> type[Drafter]:
    """The drafter of a method from outside, guarded. known: the drafters whose keys are taken. Raises UserError, one
    sentence, for a folder that holds none that can be used."""
    name, module = folder.name, outside_module(folder, "drafter")
    found = classes(module, Drafter)
    if len(found) != 1:
        many = "no class" if not found else f"{len(found)} classes"
        raise UserError(
            f"drafter.py of the method {name} must have one subclass of Drafter with a key; it has {many}."
        )
    (cls,) = found
    if not isinstance(cls.key, str) or not cls.key.isidentifier():
        raise UserError(
            f"The key of the method {name} must be a name of letters, digits and underscores."
        )
    if cls.key in known:
        raise UserError(
            f"The method {name} has the key {cls.key!r}, which another method has already."
        )
    if cls.__abstractmethods__:
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise UserError(f"The drafter of the method {name} lacks {missing}.")
    return guarded(cls)


def guarded(cls: type[Drafter]) -> type[Drafter]:
    """The same drafter, whose calls end after a time, and whose drafts and failures are checked."""
    told = {
        "title": cls.key,
        "family": "none",
        "summary": (cls.__doc__ or cls.key).strip().split("\n")[0],
    }
    usual = {name: value for name, value in told.items() if not hasattr(cls, name)}

    class Guarded(cls):
        yours = True

        @classmethod
        def build(inner, settings, models):
            made = within(cls.key, "build", lambda: super(Guarded, inner).build(settings, models))
            made._tokens = models.target.embeddings
            return made

        def begin(self, start):
            within(cls.key, "begin", lambda: super(Guarded, self).begin(start))

        def propose(self, context, max_depth):
            tree = within(
                cls.key, "propose", lambda: super(Guarded, self).propose(list(context), max_depth)
            )
            if not isinstance(tree, DraftTree):
                raise UserError(
                    f"The method {cls.key} proposed {one_line(type(tree).__name__)}, not a DraftTree."
                )
            wrong = [one for one in tree.tokens if not 0 <= one < self._tokens]
            if wrong:
                raise UserError(
                    f"The method {cls.key} drafted the token {wrong[0]}, which the target does not have."
                )
            return tree

        def observe(self, kept):
            within(cls.key, "observe", lambda: super(Guarded, self).observe(kept))

    Guarded.__name__, Guarded.__qualname__ = cls.__name__, cls.__qualname__
    Guarded.__module__, Guarded.__doc__ = cls.__module__, cls.__doc__
    for name, value in usual.items():
        setattr(Guarded, name, value)
    return Guarded


def within(key: str, call: str, work: Callable[[], T]) -> T:
    """The result of a stranger's code. Raises UserError if the code raises anything, or takes longer than ``PATIENCE``;
    code that loops in Python is stopped."""
    clock = _Clock(threading.get_ident())
    try:
        with clock:
            return work()
    except TooLong:
        raise UserError(
            f"The method {key} took more than {PATIENCE:.0f} seconds in {call}, and was stopped."
        ) from None
    except UserError:
        raise
    except Exception as error:
        told = one_line(f"{type(error).__name__}: {error}")
        raise UserError(f"The method {key} failed in {call}: {told}.") from error


class _Clock:
    """Raises TooLong in the thread that is inside this context after ``PATIENCE``."""

    def __init__(self, thread: int) -> None:
        self._thread, self._over, self._fired = thread, False, False
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._timer = threading.Timer(PATIENCE, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def _fire(self) -> None:
        with self._lock:
            if not self._over:
                self._fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(TooLong)
                )

    def __exit__(self, kind, error, trace) -> None:
        with self._lock:
            self._over = True
        self._timer.cancel()
        if self._fired and kind is not TooLong:  # it is on its way, and must not arrive later
            with suppress(TooLong):
                while True:
                    time.sleep(0.001)
