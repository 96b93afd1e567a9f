"""The number of rows that the passes of a session have.

A compiled graph prepares each of its operations anew for every new number of rows, which costs a small
model as much as many rows do. So a pass may have spare rows, whose results are ignored. A small model
has separate graphs for the usual numbers of rows, which are prepared only once (``engine.fast.cpu.fixed``); but the
processor's caches hold the weights of the graph used last, so another graph reads its copy from memory.
"""

from collections.abc import Sequence

CHANGE = 0.3
"""Milliseconds per layer that a change of the number costs: most of them in the first pass, some in the next."""
ROW = 1.2e-8
"""Milliseconds per parameter that a row adds to a pass. CHANGE and ROW were measured on two cores."""
SWITCH = 8
"""Spare rows that cost as much as going on with a graph whose weights the caches do not hold."""
FEW, MANY = 32, 16
"""More than FEW rows are rounded up to a multiple of MANY, so that prompts of about the same length share a
shape: the very first pass of a shape costs several milliseconds."""


def change_in_rows(layers: int, parameters: int) -> float:
    """How many rows cost as much as a change of the number of rows."""
    return CHANGE * layers / (ROW * parameters)


def rounded(rows: int, sizes: Sequence[int]) -> int:
    """The smallest usual number that holds so many rows. sizes: ascending."""
    for size in sizes:
        if rows <= size:
            return size
    return rows if rows <= FEW else -(-rows // MANY) * MANY


class RowShape:
    """One instance serves one session and depends only on its passes, so that a repeated run has the same passes.

    A number up to the last of ``sizes`` is rounded up to one of them, which has a graph of its own. Passes with fewer
    rows than the last one keep its graph until their spare rows have cost as much as going on with another. All passes
    beyond the last size share one graph: those with fewer rows are filled up until their spare rows have cost as much
    as a change. Then the number becomes the largest that a pass has wanted in the meantime. change: the cost of a
    change, in rows. sizes: ascending. switch: of a model whose weights no cache holds, 0.
    """

    def __init__(self, change: float, sizes: Sequence[int] = (), switch: int = SWITCH) -> None:
        self._change, self._sizes, self._switch = change, sizes, switch
        self._rows = self._wanted = self._spared = 0
        self._size = self._unused = 0

    def of(self, rows: int) -> int:
        """The number of rows, spare ones included, of a pass over ``rows`` rows."""
        rows = rounded(rows, self._sizes)
        if rows in self._sizes:
            return self._usual(rows)
        self._wanted = max(self._wanted, rows)
        self._spared += self._rows - rows
        if rows > self._rows or self._spared > self._change:
            self._rows, self._wanted, self._spared = self._wanted, 0, 0
        return self._rows

    def _usual(self, rows: int) -> int:
        """The same for a usual number."""
        self._unused = self._unused + self._size - rows if rows < self._size else 0
        if rows > self._size or self._unused > self._switch:
            self._size, self._unused = rows, 0
        return self._size
