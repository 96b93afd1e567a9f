"""The context of an EAGLE cell: keys and values of the committed text, and after them those of the draft tree.

A row is a pair: the feature at a position and the token after it. Rows whose features come from the target are
committed and stay. Rows whose features were drafted follow the committed rows; the next committed rows overwrite them.
No step copies committed rows.

Letters in shapes: R rows of a pass, S drafted rows before this pass, H hidden size, v the cell's own vocabulary.
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
    """The output of the cell for R rows: the predicted states [R, H], and logits [R, v] over the cell's own
    vocabulary."""

    states: Tensor
    logits: Tensor


class EagleContext(ABC):
    """The keys and values of one text for an EAGLE cell: rows that are committed, then rows that are drafted. The
    module's docstring explains rows and the letters in shapes."""

    length: int = 0
    """The number of committed rows."""

    def __init__(self, cell: EagleCell, target: LanguageModel) -> None:
        self._cell, self._target = cell, target

    @abstractmethod
    def read(self, states: Tensor, embedded: Tensor, ahead: int = 0) -> Read:
        """Run the cell over the next R rows, given as states and embeddings [R, H]. First drop all rows that ``grow``
        has drafted since the last commit. Of the R rows, commit all but the last ``ahead``; these stand for tokens that
        are not written yet, and are dropped after the pass. Returns the outputs for the last committed row and for the
        ``ahead`` rows after it."""

    @abstractmethod
    def grow(self, states: Tensor, embedded: Tensor, depth: int, seen: Tensor | None) -> Read:
        """Run the cell over R drafted rows, given as states and embeddings [R, H], all at the same depth of the tree.
        depth: 0 for the first drafted token after the text. seen: bool [R, S + R], True where a row may attend to one
        of the S earlier drafted rows or of these R rows; None: everywhere. Every row attends to all committed rows."""

    @property
    def blocks(self) -> Sequence[int]:
        """The numbers of levels that ``read_ahead`` and ``grow_ahead`` compute faster than separate passes over the
        same levels would."""
        return ()

    def expect(self, coming: Expected) -> None:
        """Compile the graphs for drafting ahead in a text of this size, before the text is timed. The default does
        nothing."""

    def read_ahead(self, states: Tensor, embedded: Tensor, count: int) -> ReadChain:
        """Commit rows like ``read``, then draft a chain: each further row has the likeliest token after the row before.
        Returns ``count`` rows, the last committed row first; the features of the result are their states [count, H]."""
        return self._followed(self.read(states, embedded), 0, count)

    def grow_ahead(self, state: Tensor, embedded: Tensor, depth: int, count: int) -> ReadChain:
        """Draft a chain like ``read_ahead``, but start with a drafted row, given as a state [H] and an embedding [1,
        H], at this depth. All earlier drafted rows must form a single chain."""
        return self._followed(self.grow(state[None], embedded, depth, None), depth + 1, count)

    @abstractmethod
    def forget(self, drafted: int) -> None:
        """Drop all drafted rows except for the first ``drafted`` ones."""

    def _followed(self, row: Read, depth: int, count: int) -> ReadChain:
        """Return ``row`` and the next rows of its greedy chain, ``count`` rows in total. depth: the depth of the row
        after ``row``."""
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
    """A new, empty context. It is made by ``cell.make_context`` if that is set, otherwise it is a ``ModuleContext``.
    target: the model whose embeddings and head the cell may borrow."""
    return (cell.make_context or ModuleContext)(cell, target)


def spans(rows: int, ahead: int) -> Iterator[slice]:
    """Yield slices that divide ``rows`` rows into passes of limited size. The last slice contains the last committed
    row and the ``ahead`` rows after it."""
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
