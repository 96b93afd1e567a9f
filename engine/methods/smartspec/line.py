"""A linear model of measured times, which predicts a time from the sizes on which it depends.

The model is fitted again after each measurement, while texts are written. So it reflects the speed of the machine, and
also whatever else runs on the machine.
"""

from collections.abc import Sequence
from math import sqrt
from operator import mul

FORGETTING = 0.9  # a new observation of a value leaves earlier ones this share of their weight
DOUBT = 0.3  # weight of a guessed slope, in observations at a distance of one row
CAUTION = 1.0  # each value's own mean is averaged with this many observations on the line
LONGEST = 2.0  # a time longer than this many times the prediction counts as this long
SHORTEST = 3.0  # a time this many times shorter than predicted shows that earlier ones were hiccups
HOPE = 0.15  # a prediction is lowered by up to this share where nothing was observed lately
AGEING = 0.985  # earlier observations keep this share of their weight per round
LEAST_FRESH = 1e-6  # below it ages are put into the sums: their reciprocals would be too large


class Line:
    """Milliseconds as a linear function of some inputs, fitted by least squares to all observations.

    Newer observations have more weight. The weight of an observation falls for two reasons: with each newer observation
    of the same value of the first input, and slowly with age. Observations of other values do not lower it. So hundreds
    of steps with one draft length do not hide the cost of another length.

    guesses: for each slope, a guess of it, as a share of the first observation's intercept. The slope of an input that
    never varied stays at its guess. The cost of a pass is only roughly linear. So for each observed value of the first
    input, a correction is added: the mean distance of this value's observations from the line.
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
        self._fresh = 1.0  # present weight of an observation that was made when this was 1
        self._hoped: dict[tuple[float, ...], float] = {}
        self._level = 0.0
        self.sights = 0
        self.weights = [0.0] * self._size

    def _nothing(self) -> list[list[float]]:
        """Return empty sums, a matrix with a row for each input. A row is for the summed products of this input with
        every input, and in its last column for those with the milliseconds."""
        return [[0.0] * (self._size + 1) for _ in range(self._size)]

    def at(self, *inputs: float) -> float:
        """Return the predicted milliseconds for these inputs; at least a tenth of the first observation's intercept."""
        row = (1.0, *inputs)
        predicted = self._on_line(row) + self._residuals.get(inputs[0], 0.0)
        return max(predicted, 0.1 * self._level)

    def hoped(self, *inputs: float) -> float:
        """Return the prediction for these inputs, lowered by up to the share HOPE if few of the latest observations had
        a first input of about this size. If sizes are chosen by this number, a size that was slow by accident is tried
        again."""
        if inputs not in self._hoped:
            observations = self._fresh * self._lately.get(_magnitude(inputs[0]), 0.0)
            self._hoped[inputs] = self.at(*inputs) * (1 - HOPE / sqrt(1 + observations))
        return self._hoped[inputs]

    def age(self) -> None:
        """Lower the weight of all observations. This is called once per round."""
        self._fresh *= AGEING
        self._hoped = {}
        if self._fresh < LEAST_FRESH:
            self._refresh()

    def _refresh(self) -> None:
        """Multiply all sums by the present weight of their observations, and set this weight to 1 again."""
        for sums in (*self._by_first.values(), self._sums):
            for row in sums:
                row[:] = [self._fresh * value for value in row]
        self._lately = {size: self._fresh * seen for size, seen in self._lately.items()}
        self._fresh = 1.0

    def _on_line(self, row: Sequence[float]) -> float:
        return sum(map(mul, self.weights, row))

    def _residual(self, sums: list[list[float]]) -> float:
        """Return the mean distance from the line of all observations with one value of the first input. It is reduced
        if there are few such observations. sums: the sums of these observations."""
        *inputs, milliseconds = sums[0]
        return (milliseconds - self._on_line(inputs)) / (inputs[0] + CAUTION / self._fresh)

    def see(self, milliseconds: float, *inputs: float, weight: float = 1.0) -> None:
        """Add an observation. weight: below 1 if it is one of several observations of the same round."""
        if self.sights and SHORTEST * milliseconds < self.at(*inputs):
            self._forget()  # noise only lengthens a time, so the earlier, longer times were hiccups
        if not self.sights:
            share = 1 + sum(g * x for g, x in zip(self._guesses, inputs, strict=True))
            self._level = milliseconds / share
        else:
            milliseconds = min(milliseconds, LONGEST * self.at(*inputs))
        row = (1.0, *inputs)
        mine = self._by_first.setdefault(inputs[0], self._nothing())
        new, forgotten = weight / self._fresh, 1 - FORGETTING**weight
        for row_index in range(self._size):
            for place, factor in enumerate((*row, milliseconds)):
                change = new * row[row_index] * factor - forgotten * mine[row_index][place]
                mine[row_index][place] += change
                self._sums[row_index][place] += change
        self.sights += 1
        size = _magnitude(inputs[0])
        self._lately = self._lately | {size: self._lately.get(size, 0.0) + new}
        self.weights = self._solved()
        self._residuals = {first: self._residual(sums) for first, sums in self._by_first.items()}
        self._hoped = {}

    def _solved(self) -> list[float]:
        """Return the intercept and the slopes. If a slope would be negative, it is set to 0 and the other coefficients
        are fitted again."""
        free = list(range(self._size))
        while True:
            weights = dict(zip(free, self._fitted(free), strict=True))
            negative = [place for place in free if place and weights[place] < 0]
            if not negative:
                return [weights.get(place, 0.0) for place in range(self._size)]
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
    """Return the number of binary digits of a value: 1 for 1, 2 for 2 and 3, 3 for 4 to 7, 4 for 8 to 15, and so on."""
    return int(value).bit_length()


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve matrix x = right for x by elimination. The matrix must be symmetric and positive definite. For two or three
    unknowns this takes less time than a library call."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for pivot in range(size):
        for below in range(pivot + 1, size):
            factor = rows[below][pivot] / rows[pivot][pivot]
            for place in range(pivot, size + 1):
                rows[below][place] -= factor * rows[pivot][place]
    solution = [0.0] * size
    for place in reversed(range(size)):
        rest = sum(rows[place][later] * solution[later] for later in range(place + 1, size))
        solution[place] = (rows[place][size] - rest) / rows[place][place]
    return solution
