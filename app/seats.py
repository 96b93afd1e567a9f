"""Keeps visitors' runs between events; the event that holds a run advances it.

A paused run holds no queue slot: the event has ended, and the run waits here, with a time to live. A seat is identified
by the browser session and the tab that it belongs to.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from app.settings import LIMITS, Limits
from app.turns import TURNS, Turns
from engine.errors import UserError

log = logging.getLogger("draftscope")

FAILED = "Something went wrong inside the engine; try again."
UNSEEN = 30
"""Seconds for which the run of a session that never opened the page is kept."""
PACE = 0.03
"""Fewest seconds between two updates to the browser; several fast steps share one update."""


class Job(Protocol):
    """A run, or several that take turns."""

    def header(self) -> str: ...
    def steps(self) -> Iterator[str]:
        """Yield the job's lines as they come, and "" after a turn that wrote no line."""

    def cancel(self) -> None: ...
    def summary(self) -> str: ...


class Seat:
    """A job, its trace so far, and its state. A job is advanced by one event at a time, which holds the seat."""

    def __init__(self, job: Job, turns: Turns = TURNS, limits: Limits = LIMITS) -> None:
        self.job = job
        self._turns, self._limits = turns, limits
        self.client = ""
        """The address of the visitor; "" while it is not known."""
        self.paged = True
        """Whether the visitor has, or had, the page open."""
        self.spent = 0.0
        """Seconds of computing so far."""
        self.text = job.header()
        self.state = "paused"
        """paused | running | done | error | gone"""
        self.asked: str | None = None
        """pause | stop | drop: the wish that the event that holds the seat must fulfil after this step."""
        self.touched = time.monotonic()
        self._steps = job.steps()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Hold the seat for one event. Returns False if another event holds it, or the run is over."""
        with self._lock:
            if self.state != "paused":
                return False
            self.state, self.asked = "running", None
            self.touched = time.monotonic()
            return True

    def ask(self, what: str) -> bool:
        """Pass this wish to the event that holds the seat. Returns False if no event holds it."""
        with self._lock:
            if self.state != "running":
                return False
            self.asked = what
        self._turns.wake()
        return True

    def advance(self, single: bool = False) -> Iterator[tuple[str, str, str]]:
        """Yield (trace so far, state, message) until paused, stopped, finished or failed.

        Closing the generator while the run advances, as when the tab was closed, ends the run.
        """
        if not self.take():
            return
        turn, message = None, ""
        try:
            turn = self._turns.enter(self.client)
            yield self.text, "running", ""
            sent = time.monotonic()
            while self.asked is None:
                if turn.place:
                    yield self.text, "running", turn.told()
                    turn.wait(1.0, lambda: self.asked is not None)
                    continue
                # a run that waits for another machine keeps no other run from a step on this one
                elsewhere = getattr(self.job, "elsewhere", False)
                line = self._next() if elsewhere else turn.step(self._next)
                if line is None:
                    self.asked = "end"
                    break
                self.text += line
                message = self._too_much()
                if message:
                    self.asked = "end"
                elif single and line:
                    self.asked = "pause"
                elif time.monotonic() - sent >= PACE:
                    yield self.text, "running", turn.told()
                    sent = time.monotonic()
            if self.asked == "drop":
                self.free()
                return
            if self.asked == "pause":
                self._settle("paused")
            else:
                self._finish()
            yield self.text, self.state, message
        except GeneratorExit:
            if self.state == "running":
                self.free()
            raise
        except UserError as error:
            self.free("error")
            yield self.text, "error", str(error)
        except Exception:
            log.exception("a run failed")
            self.free("error")
            yield self.text, "error", FAILED
        finally:
            if turn is not None:
                turn.leave()

    def _next(self) -> str | None:
        began = time.monotonic()
        try:
            return next(self._steps, None)
        finally:
            self.spent += time.monotonic() - began

    def _too_much(self) -> str:
        """Return the sentence that says why the run may not go on; "" while it may."""
        if self.spent > self._limits.run_seconds:
            return f"This page lets a run compute for {self._limits.run_seconds} s; it ends here."
        if len(self.text) > self._limits.trace_bytes:
            most = self._limits.trace_megabytes
            return f"This page keeps at most {most} MB of a run; it ends here."
        return ""

    def stop(self) -> str | None:
        """End a paused run. Returns its trace with the summary, or None if the run was not paused."""
        if not self.take():
            return None
        self._finish()
        return self.text

    def free(self, state: str = "gone") -> None:
        """Cancel the run, whether it is running or paused, and settle the seat in this state."""
        self._settle(state)
        self._steps = iter(())
        try:
            self.job.cancel()
        except Exception:
            log.exception("a run could not be cancelled")

    def _finish(self) -> None:
        self.job.cancel()
        self.text += self.job.summary()
        self._steps = iter(())
        self._settle("done")

    def _settle(self, state: str) -> None:
        with self._lock:
            self.state, self.asked = state, None
            self.touched = time.monotonic()


class Seats:
    """The seats of all visitors: bounded in number, each with a time to live."""

    def __init__(
        self,
        limits: Limits = LIMITS,
        here: Callable[[str], bool] = lambda session: True,
        address: Callable[[str], str] = lambda session: "",
        came: Callable[[str], bool] = lambda session: True,
    ) -> None:
        """here: returns whether a visitor still has the page open. address: returns a visitor's address, "" if it is
        unknown. came: returns whether a visitor ever had the page open."""
        self._limits, self._here, self._came, self._address = limits, here, came, address
        self._seats: dict[tuple[str, str], Seat] = {}
        self._put_out: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The visitors and tabs whose paused runs were dropped to make room for others, the latest last."""
        self._lock = threading.Lock()

    def get(self, session: str, tab: str) -> Seat | None:
        self.sweep()
        return self._seats.get((session, tab))

    def put(self, session: str, tab: str, seat: Seat) -> Seat:
        """Give the visitor this seat on this tab, in place of the last one.

        Raises UserError, and ends the new run, if all seats are taken, or all seats of the visitor's address.
        """
        self.leave(session, tab)
        self.sweep()
        seat.client, seat.paged = self._address(session), self._came(session)
        with self._lock:
            theirs = [k for k, s in self._seats.items() if s.client and s.client == seat.client]
            if len(theirs) >= self._limits.client_kept and not self._make_room(theirs):
                seat.free()
                raise UserError(
                    f"{len(theirs)} runs from your address are kept here, as many as one may have; "
                    "close a page that you no longer need."
                )
            if len(self._seats) >= self._limits.kept and not self._make_room(self._seats):
                seat.free()
                raise UserError("Too many people are running things here now; try again soon.")
            self._seats[session, tab] = seat
            self._put_out.pop((session, tab), None)
        return seat

    def put_out(self, session: str, tab: str) -> bool:
        """Return whether this visitor's paused run was dropped to make room for others."""
        return (session, tab) in self._put_out

    def leave(self, session: str, tab: str | None = None) -> None:
        """Drop a visitor's runs: on one tab, or on all."""
        with self._lock:
            keys = [k for k in self._seats if k[0] == session and tab in (None, k[1])]
            gone = [self._seats.pop(key) for key in keys]
        for seat in gone:
            if not seat.ask("drop"):
                seat.free()

    def cut_off(self, session: str) -> None:
        """Drop the visitor's advancing runs, because the connection to the browser has ended. Paused and finished runs
        are kept for a while: a browser that was only cut off comes back with the same session."""
        with self._lock:
            seats = [seat for key, seat in self._seats.items() if key[0] == session]
        for seat in seats:
            seat.ask("drop")

    def sweep(self) -> None:
        """Drop the runs whose visitor has not come back in time; a visitor who never opened the page has UNSEEN
        seconds."""
        now = time.monotonic()
        with self._lock:
            stale = [
                key
                for key, seat in self._seats.items()
                if seat.state != "running"
                and now - seat.touched
                > (self._limits.kept_seconds if self._was_here(*key) else UNSEEN)
            ]
            gone = [self._seats.pop(key) for key in stale]
        for seat in gone:
            seat.free()

    def _was_here(self, session: str, tab: str) -> bool:
        """Return whether the visitor has, or had, the page open. A run may begin before the page's heartbeat does."""
        seat = self._seats[session, tab]
        seat.paged |= self._came(session)
        return seat.paged

    def stop_all(self) -> None:
        """End every run as cancelled: running ones after their current step, paused ones at once."""
        with self._lock:
            seats = list(self._seats.values())
        for seat in seats:
            if not seat.ask("stop"):
                seat.stop()

    def running(self) -> int:
        """Return how many runs are being advanced now."""
        with self._lock:
            return sum(seat.state == "running" for seat in self._seats.values())

    def _make_room(self, among: Collection[tuple[str, str]]) -> bool:
        """Drop the oldest run that is over, or else the oldest paused run whose visitor is not here. Returns False if
        there is neither: running runs, and paused runs of visitors who are here, stay."""
        over = [k for k in among if self._seats[k].state not in ("running", "paused")]
        left = [k for k in among if self._seats[k].state == "paused" and not self._here(k[0])]
        candidates = over or left
        if not candidates:
            return False
        key = min(candidates, key=lambda k: self._seats[k].touched)
        self._seats.pop(key).free()
        if not over:
            self._put_out[key] = None
            while len(self._put_out) > self._limits.kept:
                self._put_out.popitem(last=False)
        return True

    def __len__(self) -> int:
        return len(self._seats)


class Kept(Protocol):
    """A store of things kept for visitors for a while. sweep: drops the old ones."""

    def sweep(self) -> None: ...


def sweep_forever(*kept: Kept, every: float = 15.0) -> None:
    """Sweep these stores in the background, also while nobody visits the page. every: seconds between two sweeps."""

    def loop() -> None:
        while True:
            time.sleep(every)
            for store in kept:
                store.sweep()

    threading.Thread(target=loop, name="sweep", daemon=True).start()
