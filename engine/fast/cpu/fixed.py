"""Graphs of one function: one for all sizes and, for a small model, one for each usual number of rows.

A graph prepares all of its operations anew for a pass that has other sizes than the last one. A graph for one number of
rows does so only where the number of columns changes, which is seldom within a text. Each graph holds a copy of the
weights, so those for usual numbers are made only while ``engine.fast.cpu.budget`` has room for them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from engine.fast.cpu.budget import Family
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.store import tried

SIZES = (1, 5, 9, 13, 17)
"""Rows of the usual passes: the root, alone or with 4 to 16 nodes."""
MOST_PARAMETERS = 20_000_000
"""Beyond this size, copies of the weights in fp32 would take more memory than they are worth."""
STORED_SIZES = (1, 4)
"""Of a larger model whose weights are read as they are stored, in a fifth of the memory. Up to four rows cost about the
same; making such a graph takes seconds."""


@dataclass(frozen=True)
class Size:
    """rows: of a pass, spare ones included. columns: that its buffers hold."""

    rows: int
    columns: int


def fixed_sizes(
    parameters: int, sizes: Sequence[int] = SIZES, stored: bool = False
) -> Sequence[int]:
    """The numbers of rows for which a model with this many parameters has graphs of their own. sizes: if it is small.
    stored: whether its weights are read as they are stored."""
    if is_large(parameters):
        return STORED_SIZES if stored else ()
    return sizes


def is_large(parameters: int) -> bool:
    """Whether a model with this many parameters has few graphs, which no pass waits for."""
    return parameters > MOST_PARAMETERS


class Graphs:
    """general: the graph for all sizes. make(rows): compiles a graph for this number of rows. rows: the numbers for which
    there may be graphs of their own, made on first use. example(rows): arguments on which such a graph must agree
    with the graph for all sizes. awaited: whether a pass waits while its graph is made; else graphs are made ahead only."""

    def __init__(
        self,
        general: Calls,
        make: Callable[[int], Calls],
        rows: Sequence[int],
        example: Callable[[int], list[np.ndarray]],
        awaited: bool = True,
    ) -> None:
        self.general, self._awaited = general, awaited
        self._make, self._rows, self._example = make, rows, example
        self.fixed: Family[Calls] = Family()

    @property
    def nbytes(self) -> int:
        """Bytes of the graph for all sizes."""
        return self.general.nbytes

    def of(self, rows: int, ahead: bool = False) -> Calls:
        """The graph for a pass of this many rows. ahead: no pass wants it yet."""
        if rows not in self._rows:
            return self.general
        if not ahead and not self._awaited:
            found = self.fixed.held(rows)
        else:  # what no pass can have made later may fill the budget
            found = self.fixed.of(rows, lambda: self._made(rows), ahead and self._awaited)
        return self.general if found is None else found

    def _made(self, rows: int) -> Calls | None:
        """The graph for so many rows; None if it cannot be made or gives other numbers."""
        return tried(lambda: self._checked(self._make(rows), rows), f"{rows} rows", logging.INFO)

    def _checked(self, fixed: Calls, rows: int) -> Calls:
        """Raises ArithmeticError if the graph gives other numbers than the one for all sizes."""
        given = self._example(rows)
        found, expected = (graph(given, (0, 1), _copied) for graph in (fixed, self.general))
        for one, other in zip(found, expected, strict=True):
            if not np.allclose(one, other, rtol=1e-3, atol=1e-3 * other.std()):
                raise ArithmeticError("it gives other numbers")
        return fixed


def any_columns(arguments: Callable[[Size], Sequence[Tensor]], rows: int) -> dict[int, list[int]]:
    """By number of the argument, the sizes of a graph for this number of rows and any number of columns; -1 may vary.
    arguments: of a pass of a size."""
    few, more = (arguments(Size(rows, columns)) for columns in (128, 256))
    return {
        number: [size if size == other else -1 for size, other in zip(*shapes, strict=True)]
        for number, shapes in enumerate(
            (one.shape, two.shape) for one, two in zip(few, more, strict=True)
        )
    }


def _copied(*outputs: np.ndarray) -> list[np.ndarray]:
    return [output.copy() for output in outputs]
