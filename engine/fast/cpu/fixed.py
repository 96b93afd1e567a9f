"""Graphs of one function: one for all sizes and, for a small model, one for each frequent number of rows.

A graph prepares all of its operations anew for a pass that has other sizes than the last one. A graph for one number of
rows does so only when the number of columns changes, which is seldom within a text. Each graph holds a copy of the
weights, so a graph for one number of rows is compiled only while ``engine.fast.cpu.budget`` has room for it.
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
"""Frequent numbers of rows: the root, alone or with 4, 8, 12 or 16 nodes."""
MOST_PARAMETERS = 20_000_000
"""The most parameters of a small model. For a larger model, further copies of the fp32 weights would take more memory
than the time that they save is worth."""
STORED_SIZES = (1, 4)
"""The frequent numbers of rows of a larger model whose weights are read as they are stored, so that a copy takes only a
fifth of the memory. There are only two, because passes of one to four rows take about the same time, and compiling a
graph takes seconds."""


@dataclass(frozen=True)
class Size:
    """The size of a pass. rows: its rows, spare ones included. columns: the capacity of the buffers that it reads."""

    rows: int
    columns: int


def fixed_sizes(
    parameters: int, sizes: Sequence[int] = SIZES, stored: bool = False
) -> Sequence[int]:
    """The numbers of rows for which a model with this many parameters gets a graph of its own. sizes: the answer for a
    small model. stored: whether the model's weights are read as they are stored."""
    if is_large(parameters):
        return STORED_SIZES if stored else ()
    return sizes


def is_large(parameters: int) -> bool:
    """Whether a model with this many parameters is large. A large model has few graphs, and no pass waits until one is
    compiled."""
    return parameters > MOST_PARAMETERS


class Graphs:
    """The graphs of one function: a general graph that serves passes of all sizes, and graphs for single numbers of
    rows.

    general: the general graph. make(rows): compiles the graph for this number of rows. rows: the numbers of rows that
    may have a graph, which is compiled at first use. example(rows): arguments on which that graph must agree with the
    general graph. awaited: whether a pass waits while its graph is compiled; if not, graphs are compiled only in
    advance, by ``of(rows, ahead=True)``.
    """

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
        """Bytes of the general graph."""
        return self.general.nbytes

    def of(self, rows: int, ahead: bool = False) -> Calls:
        """Return the graph for a pass of this many rows: the graph for exactly this number, if the budget holds it or
        it can be compiled, else the general graph. ahead: compile the graph in advance, before a pass needs it."""
        if rows not in self._rows:
            return self.general
        if not ahead and not self._awaited:
            graph = self.fixed.held(rows)
        else:  # a graph that no pass can have made later may fill the whole budget
            graph = self.fixed.of(rows, lambda: self._made(rows), ahead and self._awaited)
        return self.general if graph is None else graph

    def _made(self, rows: int) -> Calls | None:
        """Compile the graph for this number of rows. Return None if that fails or if the graph's numbers differ from
        the general graph's."""
        return tried(lambda: self._checked(self._make(rows), rows), f"{rows} rows", logging.INFO)

    def _checked(self, fixed: Calls, rows: int) -> Calls:
        """Return the graph ``fixed``. Raises ArithmeticError if its numbers differ from those of the general graph."""
        arguments = self._example(rows)
        actual, expected = (graph(arguments, (0, 1), _copied) for graph in (fixed, self.general))
        for output, reference in zip(actual, expected, strict=True):
            if not np.allclose(output, reference, rtol=1e-3, atol=1e-3 * reference.std()):
                raise ArithmeticError("it gives other numbers")
        return fixed


def any_columns(arguments: Callable[[Size], Sequence[Tensor]], rows: int) -> dict[int, list[int]]:
    """The shapes of a graph's arguments if the number of rows is fixed and the number of columns is not: a dict from
    the argument's index to its shape, in which -1 stands for a dimension that may vary. arguments(size): example
    arguments of a pass of this size."""
    few, more = (arguments(Size(rows, columns)) for columns in (128, 256))
    return {
        number: [size if size == larger else -1 for size, larger in zip(*shapes, strict=True)]
        for number, shapes in enumerate(
            (first.shape, second.shape) for first, second in zip(few, more, strict=True)
        )
    }


def _copied(*outputs: np.ndarray) -> list[np.ndarray]:
    return [output.copy() for output in outputs]
