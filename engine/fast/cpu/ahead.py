"""Compiled graphs that draft several tokens of one text in one call. Each drafted token is the likeliest one after the
token before it.

A small draft model computes one token in a fraction of a millisecond, and calling its graph from Python costs nearly as
much. So one graph holds several forward passes, with an argmax between each pass and the next. A row is one token
position in a pass.

Letters in shapes: G rows of the first pass, C columns of the KV buffers, V vocabulary, N layers, W hidden size, D head
size, n features.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache

from engine.core.load import Expected
from engine.core.seen import ReadChain
from engine.fast.cpu.arrays import ahead_bias
from engine.fast.cpu.budget import Family
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.columns import Columns
from engine.fast.cpu.graph import PassedColumns
from engine.fast.cpu.passes import CompiledPasses, chain_mask, close, spread
from engine.fast.cpu.store import compiled, tried
from engine.model.session import UNREAD

BLOCKS = (2, 4, 7)
"""Numbers of forward passes that one graph may hold."""


class AheadGraph(nn.Module):
    """A graph of ``count`` forward passes. Each pass but the first reads one row: the likeliest token after the pass
    before it. features: indices into hidden_states; the graph returns these states."""

    def __init__(self, module: nn.Module, count: int, features: Sequence[int]) -> None:
        super().__init__()
        self._module, self._count, self._features = module, count, features

    def forward(self, tokens: Tensor, positions: Tensor, bias: Tensor, *columns: Tensor):
        """Run all passes. The first pass reads G = UNREAD rows, of which the first may be a spare row (padding).

        tokens, positions: [G]. bias: [G, C + G + count - 1], added to the attention scores. The first pass uses all
        rows of the bias, and every later pass only the last row; each pass uses as many columns of the bias as there
        are KV columns by then. columns: as in ``PassGraph``.

        Returns the logits [count, V] at the last row of each pass; the likeliest token of each row of these logits,
        [count]; the keys and values [2 N, Hkv, G + count - 1, D] of all rows; and, if ``features`` is not empty, the
        features [count, n*W] of the rows that have logits.
        """
        read = columns[0].shape[2] + tokens.shape[0]
        layers = [Written(pair) for pair in zip(columns[::2], columns[1::2], strict=True)]
        logits, likeliest, states = [], [], []
        for place in range(self._count):
            output = self._module(
                inputs_embeds=self._module.get_input_embeddings()(tokens)[None],
                position_ids=positions[None],
                attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool),  # see PassGraph
                past_key_values=Cache(layers=layers),
                use_cache=True,
                output_hidden_states=bool(self._features),
                logits_to_keep=1,
                row_mask={None: bias[:, : read + place]},
            )
            logits.append(output.logits[0])
            own = [output.hidden_states[index][0, -1:] for index in self._features]
            states += [torch.cat(own, -1)] if own else []
            likeliest.append(logits[-1].argmax(-1))
            tokens, positions, bias = likeliest[-1], positions[-1:] + 1, bias[-1:]
        fresh = [
            torch.cat(rows, 2) for layer in layers for rows in zip(*layer.written, strict=True)
        ]
        features_of_rows = [torch.cat(states)] if states else []
        return torch.cat(logits), torch.cat(likeliest), torch.cat(fresh), *features_of_rows


class Written(PassedColumns):
    """The keys and values of one layer within an ``AheadGraph``; each pass adds its own to them. written: the keys and
    values that each pass added."""

    def __init__(self, before: tuple[Tensor, Tensor]) -> None:
        super().__init__(before)
        self.written: list[tuple[Tensor, Tensor]] = []

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        self._before = super().update(key_states, value_states)
        self.written.append(self.fresh)
        return self._before


@dataclass(frozen=True)
class AheadPass:
    """A compiled graph that reads up to ``most`` given rows, and after them ``count`` - 1 rows whose tokens it chooses
    itself. features: whether the graph returns features."""

    graph: Calls
    count: int
    most: int
    features: bool

    @property
    def nbytes(self) -> int:
        return self.graph.nbytes

    def __call__(self, columns: Columns, rows: Sequence[np.ndarray], place: int) -> ReadChain:
        """Read R given rows after the columns in use, and after them ``count`` - 1 rows that the graph chooses; add the
        keys and values of all these rows to the columns. rows: the graph's arguments for the given rows, each [R, ...],
        without positions. place: position of the first given row in the text. Returns the results of ``count`` rows:
        the last given row, and those that the graph chose."""
        row_count = len(rows[0])
        spare = self.most - row_count
        if spare:
            rows = [np.concatenate([ids[:1].repeat(spare, 0), ids]) for ids in rows]
        places = np.arange(place - spare, place + row_count).clip(0)  # of spare rows, any will do
        bias = ahead_bias(columns.length, spare, self.most, columns.capacity, self.count)

        def take(logits, likeliest, fresh, *states) -> ReadChain:
            columns.append(fresh[:, :, spare:], row_count + self.count - 1)
            features = torch.from_numpy(states[0].copy()) if states else None
            return ReadChain(torch.from_numpy(logits.copy()), likeliest.tolist(), features)

        outputs = range(4 if self.features else 3)
        return self.graph([*rows, places, bias], outputs, take, columns.given)


class AheadPasses(ABC):
    """All graphs of one module that draft several tokens per call ("ahead graphs"), compiled at first use. blocks: the
    numbers of passes for which there may be a graph."""

    blocks: Sequence[int] = ()

    def __init__(self) -> None:
        self._passes_by_size: Family[AheadPass] = Family()

    def graph(
        self, count: int, capacity: int, features: tuple[int, ...] = (), ahead: bool = False
    ) -> AheadPass | None:
        """Return the graph of ``count`` passes that returns these features, for buffers of this capacity. Return None
        if the graph cannot be compiled, gives other numbers than plain passes, or has no room in the budget. ahead:
        compile the graph in advance, before a pass needs it."""
        if count not in self.blocks:
            return None

        def make() -> AheadPass | None:
            what = f"{count} rows ahead"
            return tried(lambda: self._compiled(count, capacity, features), what, logging.INFO)

        return self._passes_by_size.of((count, capacity, features), make, ahead)

    @abstractmethod
    def _compiled(self, count: int, capacity: int, features: tuple[int, ...]) -> AheadPass:
        """Compile the graph. Raises whatever OpenVINO raises, and ArithmeticError if the graph's numbers differ from
        those of plain passes."""


def ahead_pass(
    graph: nn.Module,
    rows: Sequence[Tensor],
    columns: Sequence[Tensor],
    count: int,
    described: str,
    features: bool,
) -> AheadPass:
    """Compile a module such as ``AheadGraph``. graph: the module, which returns logits, the likeliest tokens, keys and
    values, and features if ``features`` is true. rows: example arguments with the largest number of rows that the graph
    reads; the last argument holds the rows' positions. columns: keys and values of each layer, [1, Hkv, C, D].
    described: see ``compiled``."""
    most = len(rows[0])
    bias = torch.zeros(most, columns[0].shape[2] + most + count - 1)
    inputs = [*rows, bias, *columns]
    sizes = {number: tuple(array.shape) for number, array in enumerate(inputs)}
    return AheadPass(Calls(compiled(graph, inputs, described, sizes)), count, most, features)


class ModelAhead(AheadPasses):
    """The ahead graphs of a language model. There are none if the module is large or has sliding windows."""

    def __init__(self, module: nn.Module, passes: CompiledPasses) -> None:
        super().__init__()
        self._module, self._passes = module, passes
        self.blocks = () if passes.large or passes.windows != [None] else BLOCKS

    def prepare(self, features: tuple[int, ...], coming: Expected) -> None:
        """Compile the graphs that return these features, for the buffer capacities that the coming text needs."""
        for count in self.blocks:
            for capacity in self._passes.capacities(coming, count):
                self.graph(count, capacity, features, ahead=True)

    def _compiled(self, count: int, capacity: int, features: tuple[int, ...]) -> AheadPass:
        graph, first = AheadGraph(self._module, count, features), torch.arange(UNREAD)
        columns, _ = spread(self._passes.example, UNREAD, capacity)
        described = self._passes.described(f"ahead {count} {features}")
        with self._passes.tracing():
            compiled_pass = ahead_pass(
                graph, [first, first], columns, count, described, bool(features)
            )
        self._compare(compiled_pass, features, capacity)
        return compiled_pass

    def _compare(self, compiled_pass: AheadPass, features: tuple[int, ...], capacity: int) -> None:
        """Raise ArithmeticError unless plain passes over the same rows give the same numbers."""
        for tokens in ([3], [1, 2]):
            before = self._passes.columns(capacity)
            before.reserve(capacity)
            results = compiled_pass(before, [np.array(tokens, np.int64)], 0)
            rows = tokens + results.tokens[:-1]
            columns, graphs = self._passes.columns(capacity), self._passes.graphs_with(features)
            expected = self._passes(
                torch.tensor(rows), chain_mask(len(rows)), columns, graphs, features, None
            )
            for actual, reference in zip((results.logits, results.features), expected, strict=True):
                if actual is not None and not close(actual, reference[len(tokens) - 1 :]):
                    raise ArithmeticError("the compiled graph gives other numbers")
