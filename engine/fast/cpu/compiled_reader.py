"""Compiled passes of a small module that belongs to a drafter. The module reads a text on a CPU, pass by pass, and each
row attends to the keys and values (columns) of the rows of earlier passes.

Letters in shapes: R rows, P rows of the pass (the spare ones come last), C columns of the buffers, H heads, Hkv KV
heads, D head size, N layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from engine.fast.cpu.calls import Calls
from engine.fast.cpu.columns import FIRST, Buffers, Columns
from engine.fast.cpu.fixed import Graphs, Size, any_columns, fixed_sizes
from engine.fast.cpu.graph import attended_after
from engine.fast.cpu.row_shape import RowShape, change_in_rows
from engine.fast.cpu.store import compiled

T = TypeVar("T")


class Attention:
    """The attention of one pass over R rows, for a module that is being traced.

    bias: [R, C + R], added to the scores; it decides which columns and rows a row sees. columns: k and v of each layer,
    [1, Hkv, C, D].
    """

    def __init__(self, bias: Tensor, columns: Sequence[Tensor]) -> None:
        self._bias, self._columns = bias, columns
        self._fresh: list[Tensor] = []

    def __call__(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The layer's attention: queries [1, H, R, D], keys and values [1, Hkv, R, D] -> [1, H, R, D]."""
        self._fresh += (keys, values)
        before = self._columns[2 * layer : 2 * layer + 2]
        return attended_after(before, queries, keys, values, self._bias)

    def without_batch(self, layer: int, *rows: Tensor) -> Tensor:
        """The layer's attention for queries, keys and values without the batch dimension: [H, R, D] -> [H, R, D]."""
        return self(layer, *(tensor[None] for tensor in rows))[0]

    @property
    def fresh(self) -> Tensor:
        """The keys and values of the rows of this pass, [2 N, Hkv, R, D]."""
        return torch.cat(self._fresh)


class CompiledReader:
    """A module's pass, compiled once for any number of rows and, if the module is small, once more for each frequent
    number of rows.

    sizes: the numbers of rows that have graphs of their own. graphs: see ``Graphs``.
    """

    def __init__(
        self,
        graph: nn.Module,
        shape: tuple[int, int, int],
        rows: Callable[[int], list[Tensor]],
        described: str,
        parameters: int,
        usual: Sequence[int] = (),
        capacity: int = FIRST,
    ) -> None:
        """Compile the module. Raises the exceptions of ``compiled``.

        graph: the module; its arguments are those that ``rows`` returns, then bias and columns as in ``Attention``.
        shape: N, Hkv and D of the columns. rows(R): example arguments for R rows, no two rows alike. described: see
        ``compiled``. parameters: the number of the module's weights. usual: frequent numbers of rows, ascending.
        capacity: the number of columns with which a text's buffer begins.
        """
        self._shape, self._rows, self._capacity = shape, rows, capacity
        self._buffers = Buffers()
        self._change = change_in_rows(shape[0], parameters)
        self.sizes = fixed_sizes(parameters, usual)

        def make(count: int | None) -> Calls:
            fixed = None if count is None else any_columns(self.arguments, count)
            return Calls(compiled(graph, self.arguments(Size(3, 3)), described, fixed))

        def example(count: int) -> list[np.ndarray]:
            return [argument.numpy() for argument in self.arguments(Size(count, FIRST))]

        self.graphs = Graphs(make(None), make, self.sizes, example)

    def arguments(self, size: Size) -> list[Tensor]:
        """Example arguments for a pass of this size."""
        layers, heads, width = self._shape
        columns = [torch.zeros(1, heads, size.columns, width)] * (2 * layers)
        return [*self._rows(size.rows), torch.zeros(size.rows, size.columns + size.rows), *columns]

    def columns(self) -> Columns:
        """Empty columns for a new text."""
        shape = RowShape(self._change, self.sizes)
        return Columns(self._buffers, *self._shape, self._capacity, shape)

    def __call__(
        self,
        columns: Columns,
        given: Sequence[np.ndarray],
        wanted: Sequence[int],
        take: Callable[..., T],
    ) -> T:
        """Run one pass over P rows. given: the module's arguments up to and including the bias. wanted, take: arguments
        of ``Calls``, whose result is returned."""
        return self.graphs.of(len(given[0]))(given, wanted, take, columns.given)
