"""The adapter of Kangaroo on a CPU: one graph of the adapter and the target's head, compiled by OpenVINO.

Letters in shapes: R rows, P rows of the pass (padding rows come last), C columns of the buffers, H hidden size, D head
size, V vocabulary, N attention blocks.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from engine.fast.cpu.arrays import chain_bias, padded
from engine.fast.cpu.compiled_model import CompiledModel
from engine.fast.cpu.compiled_reader import Attention, CompiledReader
from engine.fast.cpu.store import through_module
from engine.methods.kangaroo.part import Adapter, AdapterReader

SIZES = (1, 4)
"""Numbers of rows for which a graph is compiled: 1 row for a drafted token, and 4 rows for kept tokens over which the
adapter has not run yet."""
MOST_ROWS = 512  # most rows of one pass over a prompt; bounds the size of the mask


class _Pass(nn.Module):
    """One pass of the adapter over rows [R, H] at positions [R] of the text. Returns the logits [1, V] after the row
    with the index ``looked`` [1], and the keys and values of all rows, [2 N, Hkv, R, D]. bias, columns: see
    ``Attention``."""

    def __init__(self, adapter: Adapter, head: nn.Module) -> None:
        super().__init__()
        self._adapter, self._head = adapter, head

    def forward(
        self, rows: Tensor, places: Tensor, looked: Tensor, bias: Tensor, *columns: Tensor
    ) -> tuple[Tensor, Tensor]:
        attention = Attention(bias, columns)
        states = self._adapter.through(rows[None], places, attention)[0]
        return self._head(states[looked]), attention.fresh


def compiled_adapter(adapter: Adapter, target: CompiledModel) -> CompiledReader:
    """Return the compiled pass of an adapter. Raises OpenVINO's errors, and ArithmeticError if the pass gives other
    numbers than the module."""
    config, head = adapter.config, target.model.get_output_embeddings()
    graph = _Pass(adapter, head)

    def rows(count: int) -> list[Tensor]:
        states = torch.linspace(-1, 1, count * config.hidden_size).view(count, -1)
        return [states, torch.arange(count), torch.tensor([count - 1])]

    reader = CompiledReader(
        graph,
        (config.num_hidden_layers, config.num_key_value_heads, config.head_dim),
        rows,
        f"adapter {config}",
        sum(weight.numel() for weight in graph.parameters()),
        SIZES,
    )
    _compare(reader, adapter, head, rows(5)[0])
    return reader


@torch.no_grad()
def _compare(made: CompiledReader, adapter: Adapter, head: nn.Module, rows: Tensor) -> None:
    """Raise ArithmeticError unless the compiled pass gives the module's numbers for a text of five rows [5, H] that is
    passed in two pieces."""
    reader = CompiledAdapterReader(made)
    expected = head(adapter(rows[None])[0, -1:])
    reader.logits(rows[:3])
    allowed = 1e-3 * float(expected.std())
    if not torch.allclose(reader.logits(rows[3:]), expected, rtol=1e-3, atol=allowed):
        raise ArithmeticError("the compiled adapter gives other numbers")


class CompiledAdapterReader(AdapterReader):
    def __init__(self, made: CompiledReader) -> None:
        self._made, self._columns = made, made.columns()

    def logits(self, states: Tensor) -> Tensor:
        for start in range(0, len(states), MOST_ROWS):
            logits = self._pass(states[start : start + MOST_ROWS].numpy())
        return logits

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

        inputs = [padded(states, shape), places, np.array([rows - 1]), added]
        last = self._made(columns, inputs, [0, 1], take)
        self.length = start + rows
        return last


def compiled_readers(adapter: Adapter, target: CompiledModel) -> Callable[[], AdapterReader] | None:
    """Return a function that makes, for a new text, a reader that uses the compiled pass. If the pass cannot be
    compiled, or gives other numbers than the module, log a line and return None instead."""
    compiled = through_module(lambda: compiled_adapter(adapter, target), "The adapter")
    return None if compiled is None else lambda: CompiledAdapterReader(compiled)
