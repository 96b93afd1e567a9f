"""The context of an EAGLE cell: keys and values of the committed text, and after them those of the draft tree.

A row is a pair: the feature at a place and the token after it. Pairs with the target's own features are committed and
stay. Drafted pairs stand behind them until the next committed pairs overwrite them. No step copies committed rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.load import Expected
from engine.core.seen import ReadChain
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.module_columns import ModuleColumns, causal
from engine.model.language_model import LanguageModel

MOST_ROWS = 512  # the most rows of one pass over a prompt, which bounds the size of the mask


@dataclass(frozen=True)
class Read:
    """The output of the cell for R rows: states [R, H], and logits [R, v] in the cell's own vocabulary."""

    states: Tensor
    logits: Tensor


class EagleContext(ABC):
    """The rows of one text that an EAGLE cell has read. Shapes: R rows of this pass, S drafted rows before them, H
    hidden size."""

    length: int = 0
    """Number of committed pairs."""

    def __init__(self, cell: EagleCell, target: LanguageModel) -> None:
        self._cell, self._target = cell, target

    @abstractmethod
    def read(self, states: Tensor, embedded: Tensor, ahead: int = 0) -> Read:
        """Read the next pairs, states and embeddings [R, H], and commit all but the last ``ahead`` pairs, which stand
        for tokens that are not written yet. All drafted rows are forgotten. Returns the row of the last committed pair
        and the ``ahead`` rows behind it."""

    @abstractmethod
    def grow(self, states: Tensor, embedded: Tensor, depth: int, seen: Tensor | None) -> Read:
        """Read drafted pairs, states and embeddings [R, H], all at one depth of the tree; depth 0 is the first after
        the text. seen: bool [R, S + R], which drafted rows each row sees; None: all of them. Every row sees all
        committed rows."""

    @property
    def blocks(self) -> Sequence[int]:
        """The numbers of levels that ``read_ahead`` and ``grow_ahead`` can read faster than the same number of separate
        passes."""
        return ()

    def expect(self, coming: Expected) -> None:
        """Compile the graphs for reading ahead in a text of this size, before the text is timed. The default does
        nothing."""

    def read_ahead(self, states: Tensor, embedded: Tensor, count: int) -> ReadChain:
        """Commit pairs like ``read``, then draft a chain in which each row is the likeliest token after the row before.
        Returns ``count`` rows, the last pair's row first, with their states [count, H] as features."""
        return self._followed(self.read(states, embedded), 0, count)

    def grow_ahead(self, state: Tensor, embedded: Tensor, depth: int, count: int) -> ReadChain:
        """Draft a chain like ``read_ahead``, but start with a drafted pair: a state [H] and an embedding [1, H], at
        this depth. All drafted rows so far must form one chain."""
        return self._followed(self.grow(state[None], embedded, depth, None), depth + 1, count)

    @abstractmethod
    def forget(self, drafted: int) -> None:
        """Keep only the first ``drafted`` drafted rows."""

    def _followed(self, row: Read, depth: int, count: int) -> ReadChain:
        """``row`` and the next rows of its greedy chain, ``count`` rows in total. depth: the depth of the first new
        row."""
        rows, tokens = [row], []
        for place in range(count):
            tokens.append(self._cell.named(rows[-1].logits.argmax(-1)))
            if place + 1 < count:
                embedded = self._cell.embed(tokens[-1], self._target.embed)
                rows.append(self.grow(rows[-1].states, embedded, depth + place, None))
        states, logits = (
            torch.cat(parts)
            for parts in zip(*((read.states, read.logits) for read in rows), strict=True)
        )
        return ReadChain(logits, torch.cat(tokens).tolist(), states)


def context_of(cell: EagleCell, target: LanguageModel) -> EagleContext:
    """A new, empty context: from the cell's own maker if it has one, otherwise a ``ModuleContext``. target: the model
    whose embeddings and head the cell borrows."""
    return (cell.make_context or ModuleContext)(cell, target)


def spans(rows: int, ahead: int) -> Iterator[slice]:
    """Yields the slices of ``rows`` rows that are read in one pass each. The last slice holds the last pair and the
    ``ahead`` rows behind it."""
    start = 0
    while rows - start > MOST_ROWS + ahead:
        yield slice(start, start + MOST_ROWS)
        start += MOST_ROWS
    yield slice(start, rows)


class ModuleContext(EagleContext):
    """An EAGLE context that runs the cell's module in plain torch."""

    def __init__(self, cell: EagleCell, target: LanguageModel) -> None:
        super().__init__(cell, target)
        self._columns = ModuleColumns.of(cell.config.num_hidden_layers)
        self._drafted = 0

    @torch.no_grad()
    def read(self, states: Tensor, embedded: Tensor, ahead: int = 0) -> Read:
        last = states
        for part in spans(len(states), ahead):
            rows = len(states[part])
            self._drafted = 0
            mask = causal(rows, self.length, states.device)
            places = torch.arange(self.length, self.length + rows, device=states.device)
            last = self._through(states[part], embedded[part], places, mask)
            self.length += rows
        self.length -= ahead
        return self._with_logits(last[-1 - ahead :])

    @torch.no_grad()
    def grow(self, states: Tensor, embedded: Tensor, depth: int, seen: Tensor | None) -> Read:
        mask = None
        if seen is not None:
            rows, columns = seen.shape
            mask = torch.ones(rows, self.length + columns, dtype=torch.bool, device=states.device)
            mask[:, self.length :] = seen
        place = torch.full((len(states),), self.length + depth, device=states.device)
        outputs = self._through(states, embedded, place, mask)
        self._drafted += len(states)
        return self._with_logits(outputs)

    def forget(self, drafted: int) -> None:
        self._drafted = drafted

    def _with_logits(self, states: Tensor) -> Read:
        return Read(states, self._cell.logits(states, self._target.head))

    def _through(
        self, states: Tensor, embedded: Tensor, places: Tensor, mask: Tensor | None
    ) -> Tensor:
        attend = self._columns.attention(self.length + self._drafted, len(states), mask)
        return self._cell(states, embedded, self._cell.turn(places), attend)
