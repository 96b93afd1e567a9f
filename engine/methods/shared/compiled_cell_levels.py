"""Several levels of an EAGLE draft in one call: the row of each is the likeliest token after the row before.

A level takes a pass of the cell and a product with the head. From Python, the calls of two graphs cost about as much
as both. So one graph holds several levels, with an argmax between each level and the next.

Letters in shapes: G pairs of a call (the spare ones come first), C columns of the buffers, H hidden size, D head size,
N layers, v the cell's own vocabulary.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from engine.core.seen import ReadChain
from engine.fast.cpu.ahead import BLOCKS
from engine.fast.cpu.arrays import ahead_bias
from engine.fast.cpu.budget import Family
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.columns import Columns
from engine.fast.cpu.compiled_model import CompiledModel
from engine.fast.cpu.graph import attended
from engine.fast.cpu.store import compiled, in_one_line
from engine.methods.shared.eagle_cell import EagleCell
from engine.model.language_model import LanguageModel

log = logging.getLogger(__name__)

MOST_PAIRS = 8
"""Pairs that a call can read before it drafts. More rows cost nearly nothing, so all calls have this number."""


class AheadGraph(nn.Module):
    """count: levels of a call."""

    def __init__(self, cell: EagleCell, target: nn.Module, count: int) -> None:
        super().__init__()
        self._cell, self._count = cell, count
        self._embeddings = target.get_input_embeddings()
        self._head = target.get_output_embeddings()

    def forward(
        self, states: Tensor, embedded: Tensor, positions: Tensor, bias: Tensor, *columns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """states, embedded [G, H]; positions [G]; bias [G, C + G + count - 1], of which level i reads the last row, and
        the columns up to its own; columns: k and v of each layer, [1, Hkv, C, D].

        Returns logits [count, v] after the last pair and after each row that follows it, k and v
        [2 N, Hkv, G + count - 1, D] of all rows, the likeliest token [count] after each, and the states [count, H].
        """
        known, before = list(columns), columns[0].shape[2]
        logits, likeliest, found = [], [], []
        width = before + states.shape[0]
        for level in range(self._count):
            states = self._read(states, embedded, positions, bias[:, : width + level], known)[-1:]
            logits.append(self._cell.logits(states, self._head))
            likeliest.append(self._cell.named(logits[-1].argmax(-1)))
            found.append(states)
            embedded = self._cell.embed(likeliest[-1], self._embeddings)
            positions, bias = positions[-1:] + 1, bias[-1:]
        fresh = torch.cat([each[:, :, before:] for each in known])
        return torch.cat(logits), fresh, torch.cat(likeliest), torch.cat(found)

    def _read(self, states, embedded, positions, bias, known: list[Tensor]) -> Tensor:
        """Read rows after the columns, and add theirs."""

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            for place, own in ((2 * layer, keys), (2 * layer + 1, values)):
                known[place] = torch.cat([known[place], own[None]], 2)
            return attended(queries[None], known[2 * layer], known[2 * layer + 1], bias)[0]

        return self._cell(states, embedded, self._cell.turn(positions), attend)


@dataclass(frozen=True)
class AheadPass:
    """A graph for this many levels."""

    graph: Calls
    count: int

    @property
    def nbytes(self) -> int:
        return self.graph.nbytes

    def __call__(self, columns: Columns, pairs: tuple[Tensor, Tensor], place: int) -> ReadChain:
        """Read up to MOST_PAIRS pairs [R, H] after the columns in use, the first one at this place of the text, and the
        rows that follow; all are added to the columns. Returns ``count`` rows, of which the first is that of the last
        pair."""
        rows = len(pairs[0])
        spare = MOST_PAIRS - rows
        arrays = [one.numpy() for one in pairs]
        given = [np.concatenate([one[:1].repeat(spare, 0), one]) for one in arrays]
        places = np.arange(place - spare, place + rows)
        bias = ahead_bias(columns.length, spare, MOST_PAIRS, columns.capacity, self.count)

        def take(logits, fresh, likeliest, states) -> ReadChain:
            columns.append(fresh[:, :, spare:], rows + self.count - 1)
            found = [torch.from_numpy(each.copy()) for each in (logits, states)]
            return ReadChain(found[0], likeliest.tolist(), found[1])

        return self.graph([*given, places, bias], range(4), take, columns.given)


class AheadPasses:
    """The graphs of one cell beside one target. blocks: the numbers of levels for which there may be graphs; none if the
    cell has no graphs of fixed sizes, or drafts tokens that cannot be read."""

    def __init__(self, cell: EagleCell, target: LanguageModel, sizes: Sequence[int]) -> None:
        self._cell, self._target = cell, target.model
        fits = bool(sizes) and isinstance(target, CompiledModel) and _reads_its_drafts(cell, target)
        self.blocks = BLOCKS if fits else ()
        self._made: Family[AheadPass] = Family()

    def graph(self, count: int, capacity: int, ahead: bool = False) -> AheadPass | None:
        """The graph for this number of levels and buffers of this capacity, made on first use; None if it cannot be
        made, or has no room. ahead: no pass wants it yet."""
        return self._made.of((count, capacity), lambda: self._tried(count, capacity), ahead)

    def _tried(self, count: int, capacity: int) -> AheadPass | None:
        try:
            return AheadPass(self._compiled(count, capacity), count)
        except Exception as error:  # noqa: BLE001 - OpenVINO has no common kind
            log.info("There is no graph for %d levels: %s", count, in_one_line(error))
            return None

    def _compiled(self, count: int, capacity: int) -> Calls:
        cell, rows, config = self._cell, MOST_PAIRS, self._cell.config
        columns = torch.zeros(1, config.num_key_value_heads, capacity, config.head_dim)
        pairs = torch.linspace(-1, 1, 2 * rows * config.hidden_size).view(2, rows, -1)
        bias = torch.zeros(rows, capacity + rows + count - 1)
        given = [*pairs, torch.arange(rows), bias, *[columns] * (2 * config.num_hidden_layers)]
        sizes = {number: tuple(each.shape) for number, each in enumerate(given)}
        graph, described = AheadGraph(cell, self._target, count), f"eagle {config} {cell.pieces}"
        return Calls(compiled(graph, given, f"{described} {count} levels", sizes))


def _reads_its_drafts(cell: EagleCell, target: LanguageModel) -> bool:
    """Whether every token that the cell may draft is one of the target's, and has an embedding."""
    readable = cell.config.vocab_size if cell.embed_tokens is not None else target.embeddings
    own = cell.lm_head is not None and not cell.pieces.own_vocabulary
    drafted = cell.lm_head.out_features if own else target.vocab_size
    return drafted == target.vocab_size <= readable
