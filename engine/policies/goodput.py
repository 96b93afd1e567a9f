"""Goodput: the tokens that a step is expected to write, divided by the time that it is predicted to take.

Liu et al., Optimizing Speculative Decoding for Serving Large Language Models Using Goodput (2024). The tokens
follow from a moving average of the share of this text's drafted tokens that were kept. The time follows from two
linear models: one of the pass, by its rows and by the tokens before them, and one of the draft. Both are fitted while
the text is written, so they reflect the machine and the number of texts that share the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import accumulate

from engine.drafters.base import Load

FORGETTING = 0.95  # weight of earlier observations, per step
BELIEF = 3.0  # drafted tokens that the first guess of the chance counts for
GUESS = 0.7  # that first guess
ROW = 0.05  # guessed cost of a row, in passes over one row
DRAFT = 0.2  # guessed cost of a drafted token, in the same unit
DOUBT = 0.3  # weight of a guessed slope, in observations at a distance of one row
OUTLIER = 3.0  # times the prediction; a longer time counts as this long
ENOUGH = 4  # observations after which a time can be an outlier


def expected_tokens(chance: float, most: int) -> list[float]:
    """By length, 0 to ``most``: tokens of a step, including the final one, if each drafted token is kept with
    this chance provided that those before it are."""
    return list(accumulate(chance**depth for depth in range(most + 1)))


@dataclass
class Acceptance:
    """The share of the judged drafted tokens that were kept, older steps counting less."""

    kept: float = GUESS * BELIEF
    judged: float = BELIEF

    @property
    def chance(self) -> float:
        return self.kept / self.judged

    def see(self, kept: int, judged: int) -> None:
        if judged:
            self.kept = FORGETTING * self.kept + kept
            self.judged = FORGETTING * self.judged + judged


class Line:
    """Milliseconds as a linear function, by least squares over all observations, newer ones counting more.

    guesses: of each slope, as a share of the first observation's intercept. The slope of an input that never
    varied keeps its guess.
    """

    def __init__(self, guesses: Sequence[float]) -> None:
        self._guesses = tuple(guesses)
        self._size = 1 + len(guesses)
        self._forget()

    def _forget(self) -> None:
        self._squares = [[0.0] * self._size for _ in range(self._size)]
        self._products = [0.0] * self._size
        self._level = 0.0
        self.sights = 0
        self.weights = [0.0] * self._size

    def at(self, *given: float) -> float:
        """Predicted milliseconds; never below a tenth of the first observation's intercept."""
        found = self.weights[0] + sum(w * x for w, x in zip(self.weights[1:], given, strict=True))
        return max(found, 0.1 * self._level)

    def see(self, milliseconds: float, *given: float) -> None:
        if self.sights and OUTLIER * milliseconds < self.at(*given):
            self._forget()  # no time is shorter than possible, so the earlier, longer ones were hiccups
        if not self.sights:
            share = 1 + sum(g * x for g, x in zip(self._guesses, given, strict=True))
            self._level = milliseconds / share
        elif self.sights >= ENOUGH:
            milliseconds = min(milliseconds, OUTLIER * self.at(*given))
        row = (1.0, *given)
        for one in range(self._size):
            self._products[one] = FORGETTING * self._products[one] + row[one] * milliseconds
            for other in range(self._size):
                before = FORGETTING * self._squares[one][other]
                self._squares[one][other] = before + row[one] * row[other]
        self.sights += 1
        self.weights = self._solved()

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
        matrix = [[self._squares[i][j] for j in free] for i in free]
        right = [self._products[i] for i in free]
        for place, coefficient in enumerate(free):
            if coefficient:
                matrix[place][place] += DOUBT
                right[place] += DOUBT * self._guesses[coefficient - 1] * self._level
        return solved(matrix, right)


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


@dataclass
class MeasuredCosts:
    """Milliseconds of a round, fitted to the steps so far. unit: the unit of time."""

    reading: Line = field(default_factory=lambda: Line((ROW, 0.0)))
    drafting: Line = field(default_factory=lambda: Line((1.0,)))
    rest: float = 0.0
    unit = "a millisecond"

    @property
    def known(self) -> bool:
        return self.reading.sights > 0 and self.drafting.sights > 0

    def see(self, times, length: int, load: Load) -> None:
        """times: of one text's step, by stage, including the text's share of the pass."""
        draft, verify = times.get("draft", 0.0), times.get("verify", 0.0)
        self.reading.see(verify * load.texts, load.rows, load.context / KILO)
        if length:
            self.drafting.see(draft, length)
        other = sum(times.values()) - draft - verify
        self.rest = other if self.reading.sights == 1 else self.rest + 0.1 * (other - self.rest)

    def snapshot(self) -> MeasuredCosts:
        """The costs as they are now, unaffected by later steps."""
        return replace(self, reading=copy(self.reading), drafting=copy(self.drafting))

    def draft(self, length: float) -> float:
        """Cost of drafting ``length`` tokens."""
        if not length:
            return 0.0
        if not self.drafting.sights:
            return length * DRAFT * self.reading.weights[0]
        return self.drafting.at(length)

    def verify(self, rows: int, context: float) -> float:
        """Cost of a pass over ``rows`` rows of all texts."""
        return self.reading.at(rows, context / KILO)


@dataclass
class FixedCosts:
    """Given costs, not measured ones: each row of a pass beyond the first costs ``token`` passes over one row,
    including its draft."""

    token: float
    rest = 0.0
    known = True
    unit = "a pass over one row"

    def see(self, times, length: int, load: Load) -> None:
        """There is nothing to learn."""

    def snapshot(self) -> FixedCosts:
        return self

    def draft(self, length: float) -> float:
        return 0.0

    def verify(self, rows: int, context: float) -> float:
        return 1 + self.token * (rows - 1)


@dataclass(frozen=True)
class Round:
    """The other texts of the coming rounds, as they were in the last round, and the context of all texts. alike:
    how many texts do as this one does, itself included."""

    texts: int = 0
    rows: int = 0
    written: float = 0.0
    context: float = 0.0
    alike: int = 1

    @classmethod
    def after(cls, load: Load, own_rows: int, asked: int) -> Round:
        """The next round, predicted from the last pass. asked: the number of texts to assume; 0: the actual number."""
        if asked:
            return cls(context=load.context / load.texts * asked, alike=asked)
        others = load.texts - 1
        return cls(others, load.rows - own_rows, others * load.written, load.context)


Costs = MeasuredCosts | FixedCosts


def goodputs(tokens: Sequence[float], costs: Costs, others: Round) -> list[float]:
    """By length: expected tokens of a round of all texts, divided by its predicted time."""
    drafted = max(0, others.rows - others.texts)
    spent = (others.texts + others.alike) * costs.rest
    if drafted:
        spent += others.texts * costs.draft(drafted / others.texts)
    found = []
    for length, own in enumerate(tokens):
        rows = others.rows + others.alike * (length + 1)
        time = spent + others.alike * costs.draft(length) + costs.verify(rows, others.context)
        found.append((others.written + others.alike * own) / time)
    return found


def best_length(found: Sequence[float]) -> int:
    """The length with the greatest goodput; in a tie, the shortest."""
    return max(range(len(found)), key=found.__getitem__)
