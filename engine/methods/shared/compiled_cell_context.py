"""The context of an EAGLE cell on a CPU: OpenVINO compiles one pass, which contains the cell and the head.

Letters in shapes: R rows (one row per token), P rows of the compiled pass (padding rows come last), C columns of the KV
buffers (one column per token), S drafted columns, H hidden size, D head size, Hkv key/value heads, N layers, v the size
of the cell's own vocabulary.
"""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from engine.core.load import Expected
from engine.core.seen import ReadChain
from engine.fast.cpu.ahead import AheadPass
from engine.fast.cpu.arrays import HIDDEN, padded
from engine.fast.cpu.columns import capacities
from engine.fast.cpu.compiled_reader import Attention, CompiledReader
from engine.fast.cpu.store import through_module
from engine.methods.shared.compiled_cell_levels import MOST_PAIRS, CellAhead
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_context import EagleContext, ModuleContext, Read, spans
from engine.model.language_model import LanguageModel

SIZES = (1, 4, 8)
"""Numbers of rows for which graphs of fixed size are compiled. They suffice for the committed tokens of a step, or for
one level of the tree."""
AT_ONCE = (8, 16)
"""The numbers that take the place of ``SIZES`` for a cell that drafts all tokens at once, with mask rows after the
committed tokens."""


class _Pass(nn.Module):
    """The compiled pass: states and embeddings [R, H] at positions [R] -> states [R, H], keys and values of these rows
    [2 N, Hkv, R, D], and logits [K, v] at the K rows whose indices are ``looked`` [K]. The arguments bias and columns
    are those of ``Attention``."""

    def __init__(self, cell: EagleCell, head: nn.Module) -> None:
        super().__init__()
        self._cell, self._head = cell, head

    def forward(
        self,
        states: Tensor,
        embedded: Tensor,
        positions: Tensor,
        looked: Tensor,
        bias: Tensor,
        *columns: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        attention = Attention(bias, columns)
        turn = self._cell.turn(positions)
        outputs = self._cell(states, embedded, turn, attention.without_batch)
        return outputs, attention.fresh, self._cell.logits(outputs[looked], self._head)


def compiled_cell(cell: EagleCell, target: LanguageModel) -> CompiledReader:
    """Return the compiled pass of a cell with the target's head. Raises TypeError for a cell that is not in fp32.
    OpenVINO raises its own errors if compiling fails."""
    config = cell.config
    if cell.fc.weight.dtype != torch.float32:
        raise TypeError("its weights are not fp32")

    def rows(count: int) -> list[Tensor]:
        pairs = torch.linspace(-1, 1, 2 * count * config.hidden_size).view(2, count, -1)
        return [*pairs, torch.arange(count), torch.arange(count)]

    return CompiledReader(
        _Pass(cell, target.model.get_output_embeddings()),
        (config.num_hidden_layers, config.num_key_value_heads, config.head_dim),
        rows,
        f"eagle {config} {cell.pieces}",
        sum(weight.numel() for weight in cell.layers.parameters()),
        AT_ONCE if cell.pieces.masks else SIZES,
    )


class CompiledContext(EagleContext):
    """An EAGLE context that runs compiled passes and stores keys and values in growing buffers. In the buffers, drafted
    tokens follow the committed tokens."""

    def __init__(
        self, cell: EagleCell, target: LanguageModel, reader: CompiledReader, ahead: CellAhead
    ) -> None:
        super().__init__(cell, target)
        self._reader, self._ahead = reader, ahead
        self._columns = reader.columns()

    @property
    def blocks(self) -> Sequence[int]:
        return self._ahead.blocks

    def expect(self, coming: Expected) -> None:
        for rows in self._reader.sizes:
            self._reader.graphs.of(rows, ahead=True)
        for count in self.blocks:
            for capacity in capacities(coming, MOST_PAIRS + count):
                self._ahead.graph(count, capacity, ahead=True)

    def read(self, states: Tensor, embedded: Tensor, ahead: int = 0) -> Read:
        for part in spans(len(states), ahead):
            rows = len(states[part])
            self.forget(0)
            places = np.arange(self.length, self.length + rows)
            own = np.tri(rows, dtype=bool)
            last = self._pass(states[part], embedded[part], places, own, 1 + ahead)
            self.length += rows
        self.length -= ahead
        self.forget(0)
        return last

    def grow(self, states: Tensor, embedded: Tensor, depth: int, seen: Tensor | None) -> Read:
        rows, drafted = len(states), self._columns.length - self.length
        shown = np.ones((rows, drafted + rows), bool) if seen is None else seen.numpy()
        return self._pass(states, embedded, np.full(rows, self.length + depth), shown, rows)

    def read_ahead(self, states: Tensor, embedded: Tensor, count: int) -> ReadChain:
        before = max(0, len(states) - MOST_PAIRS)
        if before:
            self.read(states[:before], embedded[:before])
        pairs = states[before:], embedded[before:]
        self.forget(0)
        graph = self._graph(count)
        if graph is None:
            return super().read_ahead(*pairs, count)
        chain = graph(self._columns, _arrays(*pairs), self.length)
        self.length += len(pairs[0])
        return chain

    def grow_ahead(self, state: Tensor, embedded: Tensor, depth: int, count: int) -> ReadChain:
        graph = self._graph(count)
        if graph is None:
            return super().grow_ahead(state, embedded, depth, count)
        return graph(self._columns, _arrays(state[None], embedded), self.length + depth)

    def forget(self, drafted: int) -> None:
        self._columns.length = self.length + drafted

    def _graph(self, count: int) -> AheadPass | None:
        """Return the graph that drafts ``count`` levels; None if this graph was not compiled. Also make room in the
        buffers for the keys and values that the graph computes."""
        self._columns.reserve(self._columns.length + MOST_PAIRS + count)
        return self._ahead.graph(count, self._columns.capacity)

    def _pass(
        self, states: Tensor, embedded: Tensor, places: np.ndarray, seen: np.ndarray, last: int
    ) -> Read:
        """Run the cell over R rows and append their keys and values to the buffers. seen: bool [R, S + R], True where a
        row may attend to one of the last S columns or to one of these R rows; all earlier columns are visible to every
        row. last: the number of rows, counted from the end, to return."""
        rows, columns = len(states), self._columns
        columns.reserve(columns.length + rows)
        shape, capacity, used = columns.shape.of(rows), columns.capacity, columns.length
        before = seen.shape[1] - rows
        added = np.full((shape, capacity + shape), HIDDEN)
        added[:rows, : used - before] = 0
        np.copyto(added[:rows, used - before : used], 0, where=seen[:, :before])
        np.copyto(added[:rows, capacity : capacity + rows], 0, where=seen[:, before:])
        for row in range(rows, shape):  # a spare row sees itself
            added[row, capacity + row] = 0

        first = rows - last
        looked = np.arange(shape) if shape in self._reader.sizes else np.arange(first, rows)

        def take(states: np.ndarray, fresh: np.ndarray, logits: np.ndarray) -> Read:
            columns.append(fresh, rows)
            logits = logits[first:rows] if len(looked) == shape else logits
            return Read(*(torch.from_numpy(array.copy()) for array in (states[first:rows], logits)))

        padded_rows = [padded(array, shape) for array in (*_arrays(states, embedded), places)]
        return self._reader(columns, [*padded_rows, looked, added], range(3), take)


def _arrays(*rows: Tensor) -> list[np.ndarray]:
    return [row.numpy() for row in rows]


def compiled_contexts(cell: EagleCell) -> Callable[[EagleCell, LanguageModel], EagleContext]:
    """Return a function that makes contexts on compiled passes. The passes contain the target's head, so they are
    compiled once for each target. If this fails, the function logs a line, and makes contexts that run the plain
    module."""
    passes_by_target: WeakKeyDictionary[LanguageModel, tuple[CompiledReader, CellAhead] | None]
    passes_by_target = WeakKeyDictionary()

    def context(cell: EagleCell, target: LanguageModel) -> EagleContext:
        if target not in passes_by_target:
            reader = through_module(lambda: compiled_cell(cell, target), "The feature drafter")
            passes_by_target[target] = reader and (reader, CellAhead(cell, target, reader.sizes))
        passes = passes_by_target[target]
        return CompiledContext(cell, target, *passes) if passes else ModuleContext(cell, target)

    return context
