"""Decides which run takes the next step. A few runs take turns, each with one step, or one part of a long prompt;
further runs stand in line.

A run that has taken its share while others stand in line goes to the end of the line, so that a long run never holds up
a short one. Its place goes to the first run in line of an address with the fewest places. While an address in line has
no place, no address keeps more than one. All steps are taken on one thread, so that torch keeps one team of threads,
and not one for each visitor. On that thread, the address that had the least of its time lately goes first, however many
runs it has. So an address that keeps the engine busy waits for addresses that use it now and then, and not the other
way round.
"""

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from app.settings import LIMITS, Limits
from engine.chat.wanted import LOOK, check_wanted
from engine.errors import UserError

T = TypeVar("T")

HALF = 10.0
"""Seconds after which time spent on the engine's thread counts half."""
LEAST = 0.001
"""In seconds: a smaller use is forgotten."""


class RecentUse:
    """How many seconds of the engine's thread each user had lately. Old seconds count less and less."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._had: dict[Hashable, tuple[float, float]] = {}
        """User -> its seconds, and when they were counted."""

    def __len__(self) -> int:
        return len(self._had)

    def of(self, who: Hashable) -> float:
        seconds, when = self._had.get(who, (0.0, 0.0))
        return seconds * 0.5 ** ((self._now() - when) / HALF)

    def add(self, who: Hashable, seconds: float) -> None:
        self._had[who] = self.of(who) + seconds, self._now()
        if len(self._had) > 256:
            self._had = {user: had for user, had in self._had.items() if self.of(user) > LEAST}


class Turns:
    """The runs that take turns, and the line behind them."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._active: dict[Turn, None] = {}
        self._line: OrderedDict[Turn, None] = OrderedDict()
        self._opening: Counter[str] = Counter()
        self._steps: OrderedDict[Hashable, deque[tuple[Callable, Future]]] = OrderedDict()
        """Client -> its steps that wait for the thread; the clients in the order in which they came."""
        self._use = RecentUse()
        self.entered = 0
        """How many runs have come so far."""
        self._changed = threading.Condition()
        self._engine = ThreadPoolExecutor(1, thread_name_prefix="engine")

    def enter(self, client: str = "") -> "Turn":
        """Give a run a place among the runs that take turns, or else at the end of the line. Raises UserError if the
        line is full, or the client's share of it. client: whose run it is; "" is a run without a client, which no share
        bounds."""
        with self._changed:
            self.entered += 1
            turn = Turn(self, client)
            theirs = sum(queued.client == client for queued in self._line) if client else 0
            if self._may_run(turn):
                self._active[turn] = None
            elif theirs >= self._limits.client_waiting:
                raise UserError(
                    f"This machine is full for you: {theirs} runs from your address wait already. "
                    "Try again when one of them has ended."
                )
            elif len(self._line) < self._limits.waiting:
                self._line[turn] = None
            else:
                raise UserError(
                    f"This machine is full: {len(self._active)} runs take turns and "
                    f"{len(self._line)} wait. Try again in a minute; finished runs, Methods and all "
                    "that is on your screen stay as quick as ever."
                )
            return turn

    @contextmanager
    def opening(self, client: str = "") -> Iterator[None]:
        """Within this context a run of the client is opened. A client opens at most as many runs at once as may take
        turns; further openings wait, so that slow openings of one client, for instance with large grammars, leave room
        for other clients. Raises UserError once the visitor no longer waits for the run."""
        with self._changed:
            while client and self._opening[client] >= self._limits.client_running:
                self._changed.wait(LOOK)
                check_wanted()
            self._opening[client] += 1
        try:
            yield
        finally:
            with self._changed:
                self._opening[client] -= 1
                if not self._opening[client]:
                    del self._opening[client]
                self._changed.notify_all()

    def free(self, within: float) -> bool:
        """Wait at most ``within`` seconds until no run takes turns or stands in line. Returns whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._active or self._line), within)

    def aside(self, work: Callable[[], T]) -> T:
        """Do work that belongs to no visitor's run on the engine's thread, and return its result. Raises the work's
        errors."""
        return self._stepped("aside", work)

    def _stepped(self, whose: Hashable, work: Callable[[], T]) -> T:
        """Do the work on the engine's thread when it is due, and return its result. Raises the work's errors."""
        future: Future[T] = Future()
        with self._changed:
            self._steps.setdefault(whose, deque()).append((work, future))
        self._engine.submit(self._take_step)
        return future.result()

    def _take_step(self) -> None:
        with self._changed:
            whose = min(self._steps, key=self._use.of)
            steps = self._steps.pop(whose)
            work, future = steps.popleft()
            if steps:
                self._steps[whose] = steps
        began = time.monotonic()
        try:
            result, failure = work(), None
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits for the step
            result, failure = None, error
        with self._changed:
            self._use.add(whose, time.monotonic() - began)
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)

    def counts(self) -> tuple[int, int]:
        """Return how many runs take turns, and how many stand in line."""
        with self._changed:
            return len(self._active), len(self._line)

    def close(self) -> None:
        self._engine.shutdown(wait=False, cancel_futures=True)
        with self._changed:
            for steps in self._steps.values():
                for _, future in steps:
                    future.cancel()

    def wake(self) -> None:
        """Wake the waiting runs, so that each sees a wish to pause or stop."""
        with self._changed:
            self._changed.notify_all()

    def _may_run(self, turn: "Turn") -> bool:
        theirs = sum(active.client == turn.client for active in self._active) if turn.client else 0
        return len(self._active) < self._limits.running and theirs < self._limits.client_running

    def _held(self) -> Counter[Hashable]:
        """Return how many runs of each client take turns; a run without a client counts for itself."""
        return Counter(turn.whose for turn in self._active)

    def _crowds(self, turn: "Turn") -> bool:
        """Return whether this run's client has several places while a client in line has none."""
        held = self._held()
        return held[turn.whose] > 1 and any(not held[other.whose] for other in self._line)

    def _promote(self) -> None:
        """Give free places to runs in line, first to clients with the fewest places. A client with its full share gets
        no more."""
        while able := list(filter(self._may_run, self._line)):
            held = self._held()
            turn = min(able, key=lambda queued: held[queued.whose])  # of several, the first in line
            del self._line[turn]
            turn.taken = 0
            self._active[turn] = None
        self._changed.notify_all()


class Turn:
    """One run's place, from ``Turns.enter`` until ``leave``."""

    def __init__(self, turns: Turns, client: str = "") -> None:
        self._turns = turns
        self.client = client
        self.taken = 0
        """Steps that the run has taken since it came out of the line."""

    @property
    def whose(self) -> Hashable:
        return self.client or self

    @property
    def place(self) -> int:
        """0 if the run takes turns, otherwise its place in the line, from 1."""
        turns = self._turns
        with turns._changed:
            return list(turns._line).index(self) + 1 if self in turns._line else 0

    def told(self) -> str:
        """Return the message for the visitor: the place in the line, or how many runs take turns; "" if few do."""
        active, waiting = self._turns.counts()
        place = self.place
        if place:
            return (
                f"You are number {place} of {waiting} in line; {active} runs take turns here now, "
                "and yours comes next by itself."
            )
        if active > 2:
            return f"Busy: {active} runs take turns on this machine, a step each."
        return ""

    def wait(self, seconds: float, woken: Callable[[], bool]) -> None:
        """Wait in line until the run is let in or ``woken`` is true, for at most ``seconds``."""
        turns = self._turns
        with turns._changed:
            turns._changed.wait_for(lambda: self not in turns._line or woken(), seconds)

    def step(self, work: Callable[[], T]) -> T:
        """Take one step when it is due, and return its result. Raises the work's errors. Afterwards the run goes to the
        end of the line if other runs wait there, and if it has had its share, or its client has several places while a
        client in line has none."""
        turns = self._turns
        result = turns._stepped(self.whose, work)
        with turns._changed:
            self.taken += 1
            served = self.taken >= turns._limits.share or turns._crowds(self)
            if turns._line and self in turns._active and served:
                del turns._active[self]
                turns._line[self] = None
                turns._promote()
        return result

    def leave(self) -> None:
        """Give up the place; a second call is harmless."""
        turns = self._turns
        with turns._changed:
            turns._line.pop(self, None)
            turns._active.pop(self, None)
            turns._promote()


TURNS = Turns()
