"""Graphs of one function: one for all sizes and, for a small model, one for each usual size.

A graph whose sizes are fixed takes less time than one that works them out in each pass. Each graph holds a copy of
the weights.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.cpu.calls import Calls
from engine.cpu.store import in_one_line

log = logging.getLogger(__name__)

SIZES = (1, 5, 9, 13, 17)
"""Rows of the usual passes: the root, alone or with 4 to 16 nodes."""
MOST_PARAMETERS = 20_000_000
"""Beyond this size, the copies of the weights would take more memory than they are worth."""


MOST_GRAPHS = 12
"""Graphs of fixed sizes that are kept: those used last."""


@dataclass(frozen=True)
class Size:
    """rows: of a pass, spare ones included. columns: that its buffers hold."""

    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows} rows and {self.columns} columns"


GRAPHS = "DRAFTSCOPE_GRAPHS"
"""The setting that says how many graphs a small model may have: ``many``, or ``one``, which needs less memory."""


def fixed_sizes(parameters: int, sizes: Sequence[int] = SIZES) -> Sequence[int]:
    """The numbers of rows for which a model with this many parameters has graphs of their own. sizes: if it is small."""
    many = os.environ.get(GRAPHS, "many") != "one"
    return sizes if many and parameters <= MOST_PARAMETERS else ()


class Graphs:
    """make(size): compiles the graph; None: for all sizes. rows: the numbers of rows for which there are graphs of their
    own, one for each number of columns, made on first use. example(size): arguments on which such a graph must agree
    with the graph for all sizes. Raises whatever ``make`` raises for the graph for all sizes."""

    def __init__(
        self,
        make: Callable[[Size | None], Calls],
        rows: Sequence[int],
        example: Callable[[Size], list[np.ndarray]],
    ) -> None:
        self._make, self._rows, self._example = make, rows, example
        self.general = make(None)
        self._fixed: OrderedDict[Size, Calls] = OrderedDict()

    def of(self, rows: int, columns: int) -> Calls:
        """The graph for a pass of this many rows over buffers of this many columns."""
        if rows not in self._rows:
            return self.general
        size = Size(rows, columns)
        if size not in self._fixed:
            self._fixed[size] = self._made(size)
            if len(self._fixed) > MOST_GRAPHS:
                self._fixed.popitem(last=False)
        self._fixed.move_to_end(size)
        return self._fixed[size]

    def _made(self, size: Size) -> Calls:
        """The graph for this size; the one for all sizes if it cannot be made or gives other numbers."""
        try:
            fixed = self._make(size)
            if self._agrees(fixed, size):
                return fixed
            log.info("A graph for %s computes other numbers and is not used.", size)
        except Exception as error:  # noqa: BLE001 - OpenVINO has no common kind
            log.info("There is no graph for %s: %s", size, in_one_line(error))
        return self.general

    def _agrees(self, fixed: Calls, size: Size) -> bool:
        given = self._example(size)
        found, expected = (graph(given, (0, 1), _copied) for graph in (fixed, self.general))
        return all(
            np.allclose(one, other, rtol=1e-3, atol=1e-3 * other.std())
            for one, other in zip(found, expected, strict=True)
        )


def _copied(*outputs: np.ndarray) -> list[np.ndarray]:
    return [output.copy() for output in outputs]
