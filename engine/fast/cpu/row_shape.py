"""Decides how many rows each pass of a session has, spare rows included.

A compiled graph prepares each of its operations anew for every new number of rows. For a small model this costs as much
time as computing many rows. So a pass may have spare rows, whose results are ignored, to keep the number of the pass
before.

A small model also has separate graphs for frequent numbers of rows, which are prepared only once
(``engine.fast.cpu.fixed``). But a switch between these graphs costs time too: the processor's caches hold only the
weights of the graph used last, so another graph must read its copy of the weights from memory.
"""

from collections.abc import Sequence

CHANGE = 0.3
"""Milliseconds per layer that a change of the number of rows costs: most in the first pass, the rest in the next."""
ROW = 1.2e-8
"""Milliseconds per parameter that a row adds to a pass. CHANGE and ROW were measured on two cores."""
SWITCH = 8
"""Spare rows that cost as much as a switch to a graph whose weights the caches do not hold."""
FEW, MANY = 32, 16
"""More than FEW rows are rounded up to a multiple of MANY, so that prompts of about the same length share a
shape: the very first pass of a shape costs several milliseconds."""


def change_in_rows(layers: int, parameters: int) -> float:
    """The cost of a change of the number of rows, in rows: how many rows take as long to compute."""
    return CHANGE * layers / (ROW * parameters)


def rounded(rows: int, sizes: Sequence[int]) -> int:
    """The number of rows that a pass over ``rows`` rows is filled up to: the smallest of ``sizes`` that is at least
    ``rows``. If none is, it is ``rows`` itself up to FEW, and beyond FEW the next multiple of MANY. sizes:
    ascending."""
    for size in sizes:
        if rows <= size:
            return size
    return rows if rows <= FEW else -(-rows // MANY) * MANY


class RowShape:
    """Decides the number of rows of each pass of one session, spare rows included. The decision depends only on the
    session's passes so far, so a repeated run has the same passes.

    A pass with at most as many rows as the last of ``sizes`` is filled up to one of ``sizes``, each of which has a
    graph of its own. If a pass needs a smaller size than the pass before it, it keeps the larger size at first. Its
    size changes once the spare rows of such passes have cost as much as a switch to another graph.

    All larger passes share one graph. If one of them needs fewer rows than the one before it, it is filled up to the
    same number, until the spare rows have cost as much as a change of the number. Then the number becomes the largest
    that a pass has needed since the last change.

    change: the cost of a change of the number, in rows. sizes: ascending. switch: the cost of a switch to another
    graph, in rows; 0 for a model whose weights no processor cache holds.
    """

    def __init__(self, change: float, sizes: Sequence[int] = (), switch: int = SWITCH) -> None:
        self._change, self._sizes, self._switch = change, sizes, switch
        self._rows = self._wanted = self._spared = 0
        self._size = self._unused = 0

    def of(self, rows: int) -> int:
        """The number of rows, spare ones included, that a pass over ``rows`` rows gets."""
        rows = rounded(rows, self._sizes)
        if rows in self._sizes:
            return self._usual(rows)
        self._wanted = max(self._wanted, rows)
        self._spared += self._rows - rows
        if rows > self._rows or self._spared > self._change:
            self._rows, self._wanted, self._spared = self._wanted, 0, 0
        return self._rows

    def _usual(self, rows: int) -> int:
        """The number of rows, spare ones included, of a pass that is small enough for ``sizes``. rows: the smallest of
        ``sizes`` that holds the pass."""
        self._unused = self._unused + self._size - rows if rows < self._size else 0
        if rows > self._size or self._unused > self._switch:
            self._size, self._unused = rows, 0
        return self._size
