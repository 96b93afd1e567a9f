"""The adapter of Kangaroo on a CPU: one graph, compiled by OpenVINO, of the adapter and the target's head.

Letters in shapes: R rows, P rows of the pass (the spare ones come last), C columns of the buffers, H hidden size,
D head size, V vocabulary, N attention blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from engine.fast.cpu.arrays import chain_bias, padded
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.columns import FIRST, Buffers, Columns
from engine.fast.cpu.compiled_model import CompiledModel
from engine.fast.cpu.fixed import Graphs, Size, any_columns, fixed_sizes
from engine.fast.cpu.graph import attended_after
from engine.fast.cpu.row_shape import RowShape, change_in_rows
from engine.fast.cpu.store import compiled, in_one_line
from engine.methods.kangaroo.adapter import Adapter, AdapterReader

log = logging.getLogger(__name__)

SIZES = (1, 4)
"""Rows of the usual passes: a drafted token, and the rows that were kept without being read."""
MOST_ROWS = 512  # of one pass over a prompt; bounds the mask


class _Pass(nn.Module):
    """Rows [R, H] at places [R] -> logits [1, V] after the row ``looked`` [1], and the rows' own k and v
    [2 N, Hkv, R, D].

    bias: [R, C + R], added to the scores. columns: k and v of each block, [1, Hkv, C, D].
    """

    def __init__(self, adapter: Adapter, head: nn.Module) -> None:
        super().__init__()
        self._adapter, self._head = adapter, head

    def forward(
        self, rows: Tensor, places: Tensor, looked: Tensor, bias: Tensor, *columns: Tensor
    ) -> tuple[Tensor, Tensor]:
        fresh: list[Tensor] = []

        def attend(block: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            fresh.extend((keys, values))
            before = columns[2 * block : 2 * block + 2]
            return attended_after(before, queries, keys, values, bias)

        found = self._adapter.through(rows[None], places, attend)[0]
        return self._head(found[looked]), torch.cat(fresh)


class CompiledAdapter:
    """The pass of one adapter, for any number of rows and, if the adapter is small, for each usual number."""

    def __init__(self, adapter: Adapter, target: CompiledModel) -> None:
        config = adapter.config
        self._shape = config.num_hidden_layers, config.num_key_value_heads, config.head_dim
        self._width = config.hidden_size
        head = target.model.get_output_embeddings()
        graph = _Pass(adapter, head)
        numbers = sum(weight.numel() for weight in graph.parameters())
        self._buffers = Buffers()
        self._change = change_in_rows(config.num_hidden_layers, numbers)
        self._sizes = fixed_sizes(numbers, SIZES)

        def make(rows: int | None) -> Calls:
            fixed = None if rows is None else any_columns(self._given, rows)
            return Calls(compiled(graph, self._given(Size(3, 3)), f"adapter {config}", fixed))

        def example(rows: int) -> list[np.ndarray]:
            return [each.numpy() for each in self._given(Size(rows, FIRST))]

        self.graphs = Graphs(make(None), make, self._sizes, example)
        self._compare(adapter, head)

    def _given(self, size: Size) -> list[Tensor]:
        """Arguments of a pass of this size; no two of its rows are alike."""
        blocks, heads, head = self._shape
        rows = torch.linspace(-1, 1, size.rows * self._width).view(size.rows, -1)
        columns = [torch.zeros(1, heads, size.columns, head)] * (2 * blocks)
        bias = torch.zeros(size.rows, size.columns + size.rows)
        return [rows, torch.arange(size.rows), torch.tensor([size.rows - 1]), bias, *columns]

    def columns(self) -> Columns:
        return Columns(self._buffers, *self._shape, FIRST, RowShape(self._change, self._sizes))

    @torch.no_grad()
    def _compare(self, adapter: Adapter, head: nn.Module) -> None:
        """Raises ArithmeticError unless a text read in two pieces gives the module's own numbers."""
        rows = self._given(Size(5, 1))[0]
        reader = CompiledReader(self)
        expected = head(adapter(rows[None])[0][0, -1:])
        reader.logits(rows[:3])
        allowed = 1e-3 * float(expected.std())
        if not torch.allclose(reader.logits(rows[3:]), expected, rtol=1e-3, atol=allowed):
            raise ArithmeticError("the compiled adapter gives other numbers")


class CompiledReader(AdapterReader):
    """See ``AdapterReader``."""

    def __init__(self, made: CompiledAdapter) -> None:
        self._made, self._columns = made, made.columns()

    def logits(self, states: Tensor) -> Tensor:
        for start in range(0, len(states), MOST_ROWS):
            found = self._pass(states[start : start + MOST_ROWS].numpy())
        return found

    def _pass(self, states: np.ndarray) -> Tensor:
        rows, start, columns = len(states), self.length, self._columns
        columns.length = start
        columns.reserve(start + rows)
        shape, capacity = columns.shape.of(rows), columns.capacity
        places = padded(np.arange(start, start + rows), shape)
        added = chain_bias(start, rows, shape, capacity)

        def take(logits: np.ndarray, fresh: np.ndarray) -> Tensor:
            columns.append(fresh, rows)
            return torch.from_numpy(logits.copy())

        graph = self._made.graphs.of(shape)
        given = [padded(states, shape), places, np.array([rows - 1]), added]
        found = graph(given, [0, 1], take, columns.given)
        self.length = start + rows
        return found


def compiled_readers(adapter: Adapter, target: CompiledModel) -> Callable[[], AdapterReader] | None:
    """Returns a maker of readers over compiled passes; None, with a line in the log, if the pass cannot be compiled or
    gives other numbers."""
    try:
        made = CompiledAdapter(adapter, target)
    except Exception as error:  # noqa: BLE001 - no OpenVINO, or whatever it raises
        log.warning("The adapter runs through its own module: %s", in_one_line(error))
        return None
    return lambda: CompiledReader(made)
