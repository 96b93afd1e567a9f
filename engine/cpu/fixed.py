"""Graphs of one function: one for any number of rows and, for a small model, one for each usual number.

A graph with a fixed number of rows knows nearly all of its sizes, so a pass need not compute them. Each
graph holds a copy of the weights.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from engine.cpu.calls import Calls
from engine.cpu.store import in_one_line

log = logging.getLogger(__name__)

SIZES = (1, 5, 9, 13, 17)
"""Rows of the usual passes: the root, alone or with 4 to 16 nodes."""
MOST_PARAMETERS = 20_000_000
"""Beyond this size, the copies of the weights would take more memory than they are worth."""


def sizes_for(parameters: int) -> Sequence[int]:
    """The numbers of rows for which a model with this many parameters has separate graphs."""
    return SIZES if parameters <= MOST_PARAMETERS else ()


class Graphs:
    """make(rows): compiles the graph; None: for any number of rows. sizes: the numbers that have a graph of their
    own, made on first use. example(rows): arguments on which that graph must agree with the graph for any number.
    Raises whatever ``make`` raises for the graph for any number of rows."""

    def __init__(
        self,
        make: Callable[[int | None], Calls],
        sizes: Sequence[int],
        example: Callable[[int], list[np.ndarray]],
    ) -> None:
        self._make, self._sizes, self._example = make, sizes, example
        self._any = make(None)
        self._fixed: dict[int, Calls] = {}

    def of(self, rows: int) -> Calls:
        """The graph for a pass of this many rows."""
        if rows not in self._sizes:
            return self._any
        if rows not in self._fixed:
            self._fixed[rows] = self._made(rows)
        return self._fixed[rows]

    def _made(self, rows: int) -> Calls:
        """The graph for this number of rows; the one for any number if it cannot be made or gives other numbers."""
        try:
            fixed = self._make(rows)
            if self._agrees(fixed, rows):
                return fixed
            log.info("A graph for %d rows computes other numbers and is not used.", rows)
        except Exception as error:  # noqa: BLE001 - OpenVINO has no common kind
            log.info("There is no graph for %d rows: %s", rows, in_one_line(error))
        return self._any

    def _agrees(self, fixed: Calls, rows: int) -> bool:
        given = self._example(rows)
        found, expected = (graph(given, (0, 1), _copied) for graph in (fixed, self._any))
        return all(
            np.allclose(one, other, rtol=1e-3, atol=1e-3 * other.std())
            for one, other in zip(found, expected, strict=True)
        )


def _copied(*outputs: np.ndarray) -> list[np.ndarray]:
    return [output.copy() for output in outputs]
