"""A method's own pass over a text on a CPU: rows that see the columns of the rows before them, compiled by OpenVINO.

Letters in shapes: R rows, P rows of the pass (the spare ones come last), C columns of the buffers, D head size, N layers.
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
    """The attention of a pass: each row sees columns and rows as the bias says.

    bias: [R, C + R], added to the scores. columns: k and v of each layer, [1, Hkv, C, D].
    """

    def __init__(self, bias: Tensor, columns: Sequence[Tensor]) -> None:
        self._bias, self._columns = bias, columns
        self._fresh: list[Tensor] = []

    def __call__(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """[1, H, R, D] -> [1, H, R, D]"""
        self._fresh += (keys, values)
        before = self._columns[2 * layer : 2 * layer + 2]
        return attended_after(before, queries, keys, values, self._bias)

    def without_batch(self, layer: int, *rows: Tensor) -> Tensor:
        """Attention for rows without the batch dimension: [H, R, D] -> [H, R, D]."""
        return self(layer, *(each[None] for each in rows))[0]

    @property
    def fresh(self) -> Tensor:
        """The rows' own k and v, [2 N, Hkv, R, D]."""
        return torch.cat(self._fresh)


class CompiledReader:
    """The pass of one module, compiled for any number of rows and, if it is small, for each usual number.

    sizes: the usual numbers. graphs: see ``Graphs``.
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
        """graph: takes what ``rows`` makes, then bias and columns as ``Attention`` does. shape: N, Hkv and D of the columns.
        rows: arguments for so many rows, of which no two are alike. described: see ``compiled``. parameters: their number.
        usual: numbers of rows of the usual passes. capacity: of a text's first columns. Raises what ``compiled`` raises."""
        self._shape, self._rows, self._capacity = shape, rows, capacity
        self._buffers = Buffers()
        self._change = change_in_rows(shape[0], parameters)
        self.sizes = fixed_sizes(parameters, usual)

        def make(count: int | None) -> Calls:
            fixed = None if count is None else any_columns(self.arguments, count)
            return Calls(compiled(graph, self.arguments(Size(3, 3)), described, fixed))

        def example(count: int) -> list[np.ndarray]:
            return [each.numpy() for each in self.arguments(Size(count, FIRST))]

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
        """One pass. given: the arguments before the columns, of P rows. wanted, take: see ``Calls``."""
        return self.graphs.of(len(given[0]))(given, wanted, take, columns.given)
