"""Predicts the time of a round, and decides when to draft again after drafting did not pay.

A round is one pass of the target, with the drafts that the texts of this pass make before it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from threading import Lock

from engine.core.load import Load
from engine.methods.smartspec.line import Line

WAIT, LONGEST_WAIT = 8, 256
"""WAIT: the number of steps without a draft after which a short draft is made, to measure whether drafting pays by
then. Each time that it still does not pay, the number is doubled, up to LONGEST_WAIT."""


class Retries:
    """Decides when to try a draft although drafting does not seem to pay."""

    def __init__(self) -> None:
        self._idle, self._most = 0, WAIT

    @property
    def due(self) -> bool:
        return self._idle >= self._most

    def put_off(self) -> None:
        """Start to wait again for the next try, for the same number of steps."""
        self._idle = 0

    def passed(self, drafted: bool) -> None:
        """Record a step. drafted: whether the step had a draft."""
        if self.due and drafted:
            self._most = min(2 * self._most, LONGEST_WAIT)
        elif drafted:
            self._most = WAIT
        self._idle = 0 if drafted else self._idle + 1


ROW = 0.05  # guessed cost of a row, in passes over one row
DRAFT = 0.2  # guessed cost of a drafted token, in passes over one row
KILO = 1000.0  # the context is counted in thousands of tokens


@dataclass(eq=False)
class KnownCosts:
    """The costs of a round, in which several texts may share a pass of the target. reading: milliseconds of a pass, by
    its rows and its context. drafting: milliseconds of a draft, by its length. rest: milliseconds of everything else in
    a step. unit: the name of the unit of time, for the page. version: a number that grows with each change of the
    costs."""

    reading: Line = field(default_factory=lambda: Line((ROW, 0.0)))
    drafting: Line = field(default_factory=lambda: Line((1.0,)))
    rest: float = 0.0
    version: int = 0
    unit = "a millisecond"

    def draft(self, length: float) -> float:
        """Return the cost of drafting ``length`` tokens for one text."""
        if not length:
            return 0.0
        if not self.drafting.sights:
            return length * DRAFT * self.reading.weights[0]
        return self.drafting.hoped(length)

    def verify(self, rows: int, context: float) -> float:
        """Return the cost of a pass of the target over ``rows`` rows, those of all its texts. context: the sum of the
        lengths of these texts, in tokens."""
        return self.reading.hoped(rows, context / KILO)


@dataclass(eq=False)
class MeasuredCosts(KnownCosts):
    """Costs that are fitted to the times of all steps so far."""

    retries: Retries = field(default_factory=Retries)
    _last: tuple[float, int] = (0.0, 0)
    _sizes: set[int] = field(default_factory=set)
    _known_as: KnownCosts | None = None  # the last snapshot
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def known(self) -> bool:
        """Whether a step with a draft was already timed."""
        return bool(self.reading.sights and self.drafting.sights)

    def see(self, times, length: int, load: Load) -> None:
        """Record one text's step. times: milliseconds by stage; for the stage of the pass, the text's share of it.
        Every text of a pass calls this function. The time of the pass, and for the retries whether the pass had a
        draft, are recorded only at the first of these calls."""
        draft, verify = times.get("draft", 0.0), times.get("verify", 0.0)
        rest_of_step = sum(times.values()) - draft - verify
        with self._lock:
            if self._last != (verify, load.rows):
                self._last = verify, load.rows
                self.retries.passed(load.drafted)
                self.reading.age()
                self.drafting.age()
                self._see_pass(verify * load.texts, load)
            if length:
                self.drafting.see(draft, length, weight=1 / load.texts)
            self.version += 1
            self.rest = self.rest + 0.1 * (rest_of_step - self.rest) if self.rest else rest_of_step

    def _see_pass(self, milliseconds: float, load: Load) -> None:
        if load.shared and load.rows not in self._sizes:
            self._sizes.add(
                load.rows
            )  # the first joined pass of a size takes longer, so its time does not count
        else:
            self.reading.see(milliseconds, load.rows, load.context / KILO)

    def snapshot(self) -> KnownCosts:
        """Return a copy of the present costs, which later steps do not change."""
        if self._known_as is None or self._known_as.version != self.version:
            lines = copy(self.reading), copy(self.drafting)
            self._known_as = KnownCosts(*lines, self.rest, self.version)
        return self._known_as


@dataclass(eq=False)
class FixedCosts:
    """Costs that are given and not measured. The unit is a pass over one row. Each further row of a pass costs
    ``token``, which includes the drafting of this row's token."""

    token: float
    rest = 0.0
    retries = Retries()
    known = True
    version = 0
    unit = "a pass over one row"

    def see(self, times, length: int, load: Load) -> None:
        """Do nothing, because given costs do not change."""

    def snapshot(self) -> FixedCosts:
        return self

    def draft(self, length: float) -> float:
        return 0.0

    def verify(self, rows: int, context: float) -> float:
        return 1 + self.token * (rows - 1)


Costs = KnownCosts | FixedCosts
