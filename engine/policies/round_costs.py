"""The time of a round: of its pass, by rows and by the tokens before them, and of its drafts, by their lengths.

Both are linear models that are fitted while texts are written, so they reflect the machine and the number of texts that
share the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from math import sqrt
from operator import mul
from threading import Lock

from engine.load import Load
from engine.policies.retries import Retries

FORGETTING = 0.9  # weight of earlier times, per observation
ROW = 0.05  # guessed cost of a row, in passes over one row
DRAFT = 0.2  # guessed cost of a drafted token, in the same unit
DOUBT = 0.3  # weight of a guessed slope, in observations at a distance of one row
CAUTION = 1.0  # observations on the line, by which each value's own mean is tempered
LONGEST = 2.0  # times the prediction; a longer time counts as this long
SHORTEST = 3.0  # times shorter than predicted: then the earlier times were hiccups
HOPE = 0.15  # share of a predicted time that may be missing where nothing was seen lately
LEAST_FRESH = 1e-6
AGEING = 0.985  # weight of earlier sights in the number of those seen lately, per round


class Line:
    """Milliseconds as a linear function, by least squares over all observations.

    Newer observations count more, but each value of the first input keeps its weight for as long as no newer
    observation has that value: hundreds of steps of one length do not hide what another length costs.
    guesses: of each slope, as a share of the first observation's intercept. The slope of an input that never
    varied keeps its guess. Where a value of the first input was seen, its own mean corrects the line, because the
    cost of a pass is only roughly linear.
    """

    def __init__(self, guesses: Sequence[float]) -> None:
        self._guesses = tuple(guesses)
        self._size = 1 + len(guesses)
        self._forget()

    def _forget(self) -> None:
        self._sums = self._nothing()
        self._by_first: dict[float, list[list[float]]] = {}
        self._residuals: dict[float, float] = {}
        self._lately: dict[int, float] = {}
        self._fresh = 1.0  # present weight of what was seen when it was 1
        self._hoped: dict[tuple[float, ...], float] = {}
        self._level = 0.0
        self.sights = 0
        self.weights = [0.0] * self._size

    def _nothing(self) -> list[list[float]]:
        """By one input and another: their product, summed; last in each row, the sum of input times milliseconds."""
        return [[0.0] * (self._size + 1) for _ in range(self._size)]

    def at(self, *given: float) -> float:
        """Predicted milliseconds; never below a tenth of the first observation's intercept."""
        row = (1.0, *given)
        found = self._on_line(row) + self._residuals.get(given[0], 0.0)
        return max(found, 0.1 * self._level)

    def hoped(self, *given: float) -> float:
        """The prediction, lowered by up to HOPE where few observations lately were of about this size: if a size was
        slow by accident, a choice by this number tries it again."""
        if given not in self._hoped:
            seen = self._fresh * self._lately.get(_magnitude(given[0]), 0.0)
            self._hoped[given] = self.at(*given) * (1 - HOPE / sqrt(1 + seen))
        return self._hoped[given]

    def age(self) -> None:
        """A round has passed: the observations so far are older now, and count less beside the line."""
        self._fresh *= AGEING
        self._hoped = {}
        if self._fresh < LEAST_FRESH:
            self._refresh()

    def _refresh(self) -> None:
        """Put the age of all observations into their sums."""
        for sums in (*self._by_first.values(), self._sums):
            for row in sums:
                row[:] = [self._fresh * value for value in row]
        self._lately = {size: self._fresh * seen for size, seen in self._lately.items()}
        self._fresh = 1.0

    def _on_line(self, row: Sequence[float]) -> float:
        return sum(map(mul, self.weights, row))

    def _residual(self, sums: list[list[float]]) -> float:
        """Mean distance of one value's observations from the line, smaller where they are few."""
        *inputs, milliseconds = sums[0]
        return (milliseconds - self._on_line(inputs)) / (inputs[0] + CAUTION / self._fresh)

    def see(self, milliseconds: float, *given: float, weight: float = 1.0) -> None:
        """weight: less than 1 for one of several observations of the same moment."""
        if self.sights and SHORTEST * milliseconds < self.at(*given):
            self._forget()  # no time is shorter than possible, so the earlier, longer ones were hiccups
        if not self.sights:
            share = 1 + sum(g * x for g, x in zip(self._guesses, given, strict=True))
            self._level = milliseconds / share
        else:
            milliseconds = min(milliseconds, LONGEST * self.at(*given))
        row = (1.0, *given)
        mine = self._by_first.setdefault(given[0], self._nothing())
        new, forgotten = weight / self._fresh, 1 - FORGETTING**weight
        for one in range(self._size):
            for place, other in enumerate((*row, milliseconds)):
                change = new * row[one] * other - forgotten * mine[one][place]
                mine[one][place] += change
                self._sums[one][place] += change
        self.sights += 1
        size = _magnitude(given[0])
        self._lately = self._lately | {size: self._lately.get(size, 0.0) + new}
        self.weights = self._solved()
        self._residuals = {first: self._residual(sums) for first, sums in self._by_first.items()}
        self._hoped = {}

    def _solved(self) -> list[float]:
        """Intercept and slopes. A slope that would be negative is set to 0, and the others are fitted again."""
        free = list(range(self._size))
        while True:
            found = dict(zip(free, self._fitted(free), strict=True))
            negative = [place for place in free if place and found[place] < 0]
            if not negative:
                return [found.get(place, 0.0) for place in range(self._size)]
            free.remove(negative[0])

    def _fitted(self, free: list[int]) -> list[float]:
        matrix = [[self._sums[i][j] for j in free] for i in free]
        right = [self._sums[i][-1] for i in free]
        doubt = DOUBT / self._fresh
        for place, coefficient in enumerate(free):
            if coefficient:
                matrix[place][place] += doubt
                right[place] += doubt * self._guesses[coefficient - 1] * self._level
        return solved(matrix, right)


def _magnitude(value: float) -> int:
    """The same for values of which none is twice another: 1, 2 to 3, 4 to 7, 8 to 15, and so on."""
    return int(value).bit_length()


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solves matrix x = right for x by elimination, which for two or three unknowns is faster than a library.
    The matrix is symmetric and positive definite."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for pivot in range(size):
        for below in range(pivot + 1, size):
            factor = rows[below][pivot] / rows[pivot][pivot]
            for place in range(pivot, size + 1):
                rows[below][place] -= factor * rows[pivot][place]
    found = [0.0] * size
    for place in reversed(range(size)):
        rest = sum(rows[place][later] * found[later] for later in range(place + 1, size))
        found[place] = (rows[place][size] - rest) / rows[place][place]
    return found


KILO = 1000.0  # the context is counted in thousands of tokens


@dataclass(eq=False)
class KnownCosts:
    """Milliseconds of a round, which may be of several texts at a time. unit: the unit of time."""

    reading: Line = field(default_factory=lambda: Line((ROW, 0.0)))
    drafting: Line = field(default_factory=lambda: Line((1.0,)))
    rest: float = 0.0
    unit = "a millisecond"

    def draft(self, length: float) -> float:
        """Cost of drafting ``length`` tokens."""
        if not length:
            return 0.0
        if not self.drafting.sights:
            return length * DRAFT * self.reading.weights[0]
        return self.drafting.hoped(length)

    def verify(self, rows: int, context: float) -> float:
        """Cost of a pass over ``rows`` rows of all texts."""
        return self.reading.hoped(rows, context / KILO)


@dataclass(eq=False)
class MeasuredCosts(KnownCosts):
    """Costs that are fitted to the steps so far. version: how often they have changed."""

    retries: Retries = field(default_factory=Retries)
    version: int = 0
    _last: tuple[float, int] = (0.0, 0)
    _sizes: set[int] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def known(self) -> bool:
        """Whether a step with a draft was timed."""
        return bool(self.reading.sights and self.drafting.sights)

    def see(self, times, length: int, load: Load) -> None:
        """times: of one text's step, by stage, including the text's share of the pass. Every text of a
        pass reports the pass; only the first report counts, for the times and for when to try again."""
        draft, verify = times.get("draft", 0.0), times.get("verify", 0.0)
        other = sum(times.values()) - draft - verify
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
            self.rest = self.rest + 0.1 * (other - self.rest) if self.rest else other

    def _see_pass(self, milliseconds: float, load: Load) -> None:
        if load.shared and load.rows not in self._sizes:
            self._sizes.add(
                load.rows
            )  # the first joined pass of a size takes longer, and does not count
        else:
            self.reading.see(milliseconds, load.rows, load.context / KILO)

    def snapshot(self) -> KnownCosts:
        """The costs as they are now, unaffected by later steps."""
        return KnownCosts(copy(self.reading), copy(self.drafting), self.rest)


@dataclass(eq=False)
class FixedCosts:
    """Given costs, not measured ones: each row of a pass beyond the first costs ``token`` passes over one row,
    including its draft."""

    token: float
    rest = 0.0
    retries = Retries()
    known = True
    version = 0
    unit = "a pass over one row"

    def see(self, times, length: int, load: Load) -> None:
        """There is nothing to learn."""

    def snapshot(self) -> FixedCosts:
        return self

    def draft(self, length: float) -> float:
        return 0.0

    def verify(self, rows: int, context: float) -> float:
        return 1 + self.token * (rows - 1)


Costs = KnownCosts | FixedCosts
