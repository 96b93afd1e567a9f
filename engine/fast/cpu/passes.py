"""Full passes of a causal language model through its compiled graph.

Letters in shapes: R rows of a pass, W width of the hidden states, n requested hidden states, Hkv key-value heads, C
columns of the buffers, D head size, V vocabulary.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.core.load import Expected
from engine.fast.cpu.arrays import HIDDEN, bias, padded, positions
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.columns import FIRST, Buffers, Columns, capacities
from engine.fast.cpu.convertible import NotConvertible, check, seen, windows_of
from engine.fast.cpu.fixed import Graphs, any_columns, fixed_sizes, is_large
from engine.fast.cpu.freed_memory import give_back, not_wanted
from engine.fast.cpu.graph import NAME, PassGraph
from engine.fast.cpu.row_shape import FEW, SWITCH, RowShape, change_in_rows, rounded
from engine.fast.cpu.store import Compiled, compiled, last_of
from engine.model.attention import NAME as PLAIN
from engine.model.cache import KVCache
from engine.model.forward import forward
from engine.model.layers import Layers
from engine.model.row_mask import RowMask

_CPU = torch.device("cpu")
_LOGITS, _FRESH, _FEATURES = 0, 1, 2  # outputs of a PassGraph; the features come last
MOST_SETS = 4
"""The most sets of features whose graphs for frequent numbers of rows are held, besides the graphs without features."""


class Pass(Calls):
    """A compiled graph of a whole pass. features: indices into hidden_states; the graph returns these states."""

    def __init__(self, graph: Compiled, traced: PassGraph, features: tuple[int, ...]) -> None:
        super().__init__(graph)
        self.traced, self.features = traced, features


@dataclass(frozen=True)
class FeatureGraphs:
    """Graphs that return the same features. features: indices into hidden_states; the graphs return these states."""

    features: tuple[int, ...]
    graphs: Graphs


@dataclass(frozen=True)
class Way:
    """How a pass is computed. graph: the compiled graph that runs it. shape: the number of rows, spare ones included.
    looked: indices of the rows that get logits. wanted: the slice of these logits that is returned."""

    graph: Pass
    shape: int
    looked: np.ndarray
    wanted: slice


class CompiledPasses:
    """The compiled passes of one module. Each graph for all sizes is first tested against the module itself.

    One graph serves passes of all sizes. If features are requested that it does not return, a new graph that returns
    them takes its place. Small modules also have graphs for frequent numbers of rows: one group of graphs without
    features, and one group for each of the MOST_SETS sets of features that were used last.

    The constructor raises NotConvertible, and whatever OpenVINO or the module raises while the graph is compiled.
    """

    def __init__(self, module: nn.Module) -> None:
        check(module)
        self._module = module
        self._embed = module.get_input_embeddings()
        plain = type(self._embed) is nn.Embedding
        self._table = self._embed.weight.detach().numpy() if plain else None
        self.example, self.windows = seen(module)
        self.layers = len(self.example) // 2
        numbers = _numbers(module)
        self._change, self.large = change_in_rows(self.layers, numbers), is_large(numbers)
        self.sizes: Sequence[int] = ()
        self._buffers = Buffers()
        self._feature_graphs: list[FeatureGraphs] = []  # most recently used last
        self._refused: dict[tuple[int, ...], str] = {}  # features whose graph gave other numbers
        self._lock = RLock()
        self.general = self._compared(())
        self.sizes = fixed_sizes(numbers, stored=self.general.stored)
        self.graphs_with(())
        self.tidy()

    def columns(self, capacity: int) -> Columns:
        """Empty columns for a new text. capacity: how many columns a large model's text begins with; a small model's
        text begins with FIRST columns."""
        return self._columns(capacity if self.large else FIRST, self.row_shape())

    def capacities(self, coming: Expected, rows: int) -> list[int]:
        """The buffer capacities that passes over ``rows`` rows of the coming text need; none for a large model."""
        return [] if self.large else capacities(coming, rows)

    def _columns(self, capacity: int, shape: RowShape) -> Columns:
        heads, size = self.example[0].shape[1], self.example[0].shape[3]
        return Columns(self._buffers, self.layers, heads, size, capacity, shape)

    @property
    def width(self) -> int:
        """The hidden size W."""
        return self._embed.embedding_dim

    def described(self, what: object) -> str:
        """A text that identifies a graph of the module. The name of the graph's file in the cache folder depends on
        this text. what: tells this graph from other graphs of the module."""
        return f"{type(self._module).__name__} {what} {self._module.config.to_json_string()}"

    def row_shape(self) -> RowShape:
        """A new ``RowShape``, which decides the sizes of one session's passes, or of its passes through one stretch of
        layers."""
        return RowShape(self._change, self.sizes, 0 if self.large else SWITCH)

    def shared_row_shape(self) -> RowShape:
        """A new ``RowShape`` for one session's passes through a single graph that serves every number of rows."""
        return RowShape(self._change)

    def windows_of(self, layers: Layers) -> list[int | None]:
        """The different sliding windows of these layers; None stands for full attention."""
        return windows_of(self._module, self.layers, layers)

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Within this context, the module uses the attention function that graphs are traced with."""
        self._module.set_attn_implementation(NAME)
        try:
            yield
        finally:
            self._module.set_attn_implementation(PLAIN)

    def prepare(self, features: tuple[int, ...], most_rows: int) -> None:
        """Compile the graphs that return these features, before a pass needs them: the graph for all sizes, and graphs
        for frequent numbers of rows. A graph for a frequent number is compiled if passes of up to ``most_rows`` rows
        use that number. Raises the exceptions of the constructor."""
        feature_graphs = self.graphs_with(features)
        for rows in self.sizes:
            if rows <= rounded(most_rows, self.sizes):
                feature_graphs.graphs.of(rows, ahead=True)

    def __call__(
        self,
        inputs: Tensor,
        mask: RowMask,
        columns: Columns,
        feature_graphs: FeatureGraphs,
        features: tuple[int, ...],
        last: int | None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Read R rows; returns logits [last, V] and features [R, n*W], and adds the rows' keys and values to the
        columns.

        inputs: token ids [R] or vectors [R, W]. feature_graphs: graphs that return at least ``features``. last: how
        many of the last rows get logits; None means all. With ``last`` 0 the returned logits are None, and without
        ``features`` the returned features are None.
        """
        way = self._way(len(inputs), columns, feature_graphs, last)
        return self._passed(inputs, mask, columns, features, last, way)

    def _way(
        self, rows: int, columns: Columns, feature_graphs: FeatureGraphs, last: int | None
    ) -> Way:
        shape = columns.shape.of(rows)
        if last is None or shape <= FEW:  # then len(looked) changes only with the number of rows
            looked, wanted = np.arange(shape), slice(0 if last is None else rows - last, rows)
        else:
            looked, wanted = np.arange(rows - max(last, 1), rows), slice(last)
        return Way(feature_graphs.graphs.of(shape), shape, looked, wanted)

    def _passed(
        self,
        inputs: Tensor,
        mask: RowMask,
        columns: Columns,
        features: tuple[int, ...],
        last: int | None,
        way: Way,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Read R rows in the given way; arguments and results as for ``__call__``."""
        returned = way.graph.features
        rows = len(inputs)
        biases = [bias(mask, window, way.shape, columns.capacity) for window in self.windows]
        numbers = [_FRESH, *(_FEATURES + returned.index(index) for index in features)]
        if last != 0:
            numbers.append(_LOGITS)

        def take(fresh, *outputs):
            columns.append(fresh, rows)
            logits = None
            if last != 0:
                *outputs, scores = outputs
                logits = torch.from_numpy(scores[way.wanted].copy())
            states = torch.from_numpy(np.concatenate(outputs, -1)[:rows]) if features else None
            return logits, states

        vectors = padded(self.vectors(inputs), way.shape)
        arguments = [vectors, positions(mask, way.shape), way.looked, *biases]
        return way.graph(arguments, numbers, take, columns.given)

    def vectors(self, inputs: Tensor) -> np.ndarray:
        """The rows' embeddings [R, W]. inputs: token ids [R], or the vectors [R, W] themselves."""
        if inputs.is_floating_point():
            return inputs.numpy()
        if self._table is not None:
            return self._table[inputs.numpy()]
        return self._embed(inputs).detach().numpy()

    def graphs_with(self, features: tuple[int, ...]) -> FeatureGraphs:
        """Return graphs that return at least these features, compiled when they are first requested.

        If no features are requested, a small module's graphs return none. Raises the exceptions of the constructor.
        """
        with self._lock:
            for feature_graphs in self._feature_graphs:
                alike = self.large or bool(feature_graphs.features) == bool(features)
                if alike and set(feature_graphs.features) >= set(features):
                    self._feature_graphs.remove(feature_graphs)
                    self._feature_graphs.append(feature_graphs)
                    return feature_graphs
            if features in self._refused:
                raise NotConvertible(self._refused[features])
            self._return(features)
            if self.large:
                self._feature_graphs, features = [], self.general.features
            feature_graphs = FeatureGraphs(features, self._graphs(features))
            self._keep(feature_graphs)
            return feature_graphs

    def _return(self, features: tuple[int, ...]) -> None:
        """Make sure that the graph for all sizes returns these features: if it does not yet, compile a new one in its
        place."""
        if set(features) <= set(self.general.features):
            return
        try:
            all_features = tuple(sorted({*self.general.features, *features}))
            self.general = self._compared(all_features)
        except NotConvertible as error:
            self._refused[features] = str(error)
            raise
        for feature_graphs in self._feature_graphs:
            feature_graphs.graphs.general = self.general
        self.tidy()

    def tidy(self) -> None:
        """Return unneeded memory to the system after graphs were compiled. For a large module this includes the memory
        of its torch weights, because few passes go through the module itself."""
        if self.large:
            gc.collect()  # a trace refers to itself
            for weight in self._module.parameters():
                not_wanted(weight.data_ptr(), weight.nbytes)
        give_back()

    def _keep(self, feature_graphs: FeatureGraphs) -> None:
        self._feature_graphs.append(feature_graphs)
        sets = [entry for entry in self._feature_graphs if entry.features]
        if len(sets) > MOST_SETS:
            self._feature_graphs.remove(sets[0])

    def _pass(self, graph: PassGraph, features: tuple[int, ...], rows: int | None) -> Pass:
        """Compile a graph for this number of rows, or for all sizes if ``rows`` is None."""
        arguments, sizes = self._arguments(3), None
        if rows is not None:
            sizes = any_columns(lambda size: self._arguments(size.rows, size.columns), rows)
        with self.tracing():
            model = compiled(graph, arguments, self.described(features), sizes)
        last = self.large and not model.stored
        return Pass(last_of(graph, model) if last else model, graph, features)

    def _graphs(self, features: tuple[int, ...]) -> Graphs:
        graph = self.general.traced
        if self.general.features != features:
            graph = PassGraph(self._module, self.layers, self.windows, features)

        def example(rows: int) -> list[np.ndarray]:
            return [argument.numpy() for argument in self._arguments(rows, FIRST)]

        def make(rows: int) -> Pass:
            compiled_pass = self._pass(graph, features, rows)
            if self.large:  # naming the graph's file has read all of the weights
                self.tidy()
            return compiled_pass

        return Graphs(self.general, make, self.sizes, example, awaited=not self.large)

    @torch.no_grad()
    def _arguments(self, rows: int, capacity: int = 0) -> list[Tensor]:
        """Example arguments of a graph, for a pass of this many rows after a few columns. capacity: the least capacity
        of the buffers."""
        places = torch.arange(rows)
        columns, mask = spread(self.example, rows, capacity)
        vectors = self._embed(places % self._embed.num_embeddings)
        return [vectors, places, places, *[mask] * len(self.windows), *columns]

    @torch.no_grad()
    def _compared(self, features: tuple[int, ...]) -> Pass:
        """Compile a graph for all sizes that returns these features. Raises NotConvertible unless the graph gives the
        module's own numbers for a prompt and a tree."""
        graph = PassGraph(self._module, self.layers, self.windows, features)
        compiled_pass = self._pass(graph, features, None)
        generator = torch.Generator().manual_seed(0)
        columns = self._columns(64, self.shared_row_shape())
        cache = KVCache.empty(self.layers, 64)
        for mask in _trial_masks():
            count = len(mask.row_positions)
            tokens = torch.randint(self._embed.num_embeddings, (count,), generator=generator)
            every = np.arange(count)
            way = Way(compiled_pass, count, every, slice(None))
            results = self._passed(tokens, mask, columns, features, None, way)
            positions = mask.row_positions[None]
            expected = forward(self._module, tokens[None], positions, mask, cache, features)
            for actual, reference in zip(results, expected, strict=True):
                if actual is not None and not close(actual, reference[0]):
                    raise NotConvertible("the compiled graph gives other numbers")
        return compiled_pass


def _numbers(module: nn.Module) -> int:
    """The number of weights that a graph of the module holds. The graph's input are embedding vectors, so the graph
    holds the embedding table only if the table is also the output head."""
    weights = sum(weight.numel() for weight in module.parameters())
    table, head = module.get_input_embeddings(), module.get_output_embeddings()
    tied = head is not None and head.weight is table.weight
    return weights if tied else weights - table.weight.numel()


def spread(columns: Sequence[Tensor], rows: int, capacity: int) -> tuple[list[Tensor], Tensor]:
    """Return the columns [1, Hkv, c, D], padded to buffers [1, Hkv, C, D] of at least this capacity, and a bias [R, C +
    R] with which all rows see the c columns and each other."""
    used = columns[0].shape[2]
    spare = max(0, capacity - used)
    bias = torch.zeros(rows, used + spare + rows)
    bias[:, used : used + spare] = float(HIDDEN)
    return [F.pad(column, (0, 0, 0, spare)) for column in columns], bias


def chain_mask(rows: int) -> RowMask:
    """The mask of the first ``rows`` tokens of a text: each row sees the rows before it and itself."""
    return RowMask(0, list(range(rows)), [(2 << row) - 1 for row in range(rows)], _CPU)


def close(actual: Tensor, expected: Tensor) -> bool:
    """Whether two tensors agree: each number may differ by a thousandth of itself plus a thousandth of the standard
    deviation of ``expected``."""
    return torch.allclose(actual, expected, rtol=1e-3, atol=1e-3 * float(expected.std()))


def _trial_masks() -> Iterable[RowMask]:
    """The masks of two passes: a prompt of 24 rows, and then a tree of four rows."""
    yield chain_mask(24)
    yield RowMask(24, [0, 1, 1, 2], [0b1, 0b11, 0b101, 0b1011], _CPU)
