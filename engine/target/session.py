"""A sequence that a language model is reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.gpu.inputs import Rows
from engine.gpu.question import Draft, Looked
from engine.sampling import Sampling
from engine.target.cache import KVCache
from engine.target.forward import forward
from engine.target.row_mask import RowMask

if TYPE_CHECKING:
    from engine.target.language_model import LanguageModel

READ_AHEAD = 3  # more tokens than this are a prompt, read in passes of their own sizes
PREFILL_ROWS = 512  # rows of one prefill pass; bounds the mask and the activations


class Session:
    """One sequence being read: committed columns, and the scratch rows of the running step.

    Rows are numbered from 0 since the last commit. Each has a parent row, or -1 for the last
    committed token, and sees the committed columns, its ancestors and itself.
    """

    def __init__(
        self,
        model: LanguageModel,
        capacity: int,
        features: tuple[int, ...],
        cache: KVCache | None = None,
    ) -> None:
        """cache: empty, where it is one that lies beside others (``engine.batch.joint``)."""
        self.model = model
        self.features = features
        self.length = 0
        self._slot = model.slots.take(self, capacity) if model.slots and cache is None else None
        if cache is not None:
            self._cache = cache
        elif self._slot:
            self._cache = self._slot.cache
        elif model.lean:
            self._cache = model.lean.cache(capacity)
        else:
            self._cache = KVCache.empty(model.layers, capacity)
        self._clear_scratch()

    def _clear_scratch(self) -> None:
        self._depths: list[int] = []
        self._ancestors: list[int] = []  # bit s of an entry: the row sees scratch row s

    @property
    def rows(self) -> int:
        """Scratch rows fed since the last commit."""
        return len(self._depths)

    @property
    def ready(self) -> bool:
        """Whether its buffers exist: from the first pass on."""
        return self._cache.ready

    @torch.no_grad()
    def prefill(
        self, tokens: Sequence[int], layers: tuple[int, ...] | None = None
    ) -> Tensor | None:
        """Read and commit tokens without logits; returns their features [T, n*H] or None.

        layers: whose features; None is those of every feed.
        """
        layers, parts = self.features if layers is None else layers, []
        for start in range(0, len(tokens), PREFILL_ROWS):
            chunk = tokens[start : start + PREFILL_ROWS]
            rows = self._rows(chunk, range(-1, len(chunk) - 1))
            _, features = self._read(rows, last=0, layers=layers)
            self.commit(range(len(chunk)))
            parts.append(features)
        if not layers:
            return None
        if not parts:
            width = self.model.hidden_size * len(layers)
            return torch.empty(0, width, dtype=self.model.dtype, device=self.model.device)
        return torch.cat(parts)

    @torch.no_grad()
    def take_over(self, other: Session, length: int) -> None:
        """Begin, having read nothing yet, with copies of the first ``length`` columns that a
        session of the same model has committed."""
        self._cache.take_over(other._cache, length)
        self.length = length

    @torch.no_grad()
    def feed(self, tokens: Sequence[int], parents: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Read R rows in one pass. parents: row numbers, or -1; a parent comes before its child.

        Returns logits [R, V] and features [R, n*H] (None if none were asked for).
        """
        return self._read(self._rows(tokens, parents))

    @torch.no_grad()
    def look(self, draft: Draft) -> Looked:
        """Read a root and a tree in one pass, which judges the tree too, if asked and if it can."""
        rows = self.lay_out(draft)
        if draft.question is not None and self._slot is not None:
            found = self._slot.judge([rows], self.features)
            if found is not None:
                self.written()
                return found[0]
        if draft.tree.shape is not None:
            self._clear_scratch()
            draft.tree.fetch()
            rows = self.lay_out(draft)
        return Looked(*self._read(rows))

    @torch.no_grad()
    def write(
        self,
        tokens: Sequence[int],
        count: int,
        vocabulary: int,
        sampling: Sampling,
        drawn: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Read tokens behind the committed ones and draft ``count`` more, of the first
        ``vocabulary`` ids: int32 [count], and what they were drawn from, [count, V], or None at
        temperature 0, both on the device. Needs a model with slots.

        drawn: a uniform each; None at temperature 0. The rows fed are len(tokens) + count - 1, one behind the other; none is committed.
        """
        if len(tokens) > READ_AHEAD:
            self.prefill(tokens[:-1])
            tokens = tokens[-1:]
        found = self._slot.write(tokens, self.length, count, vocabulary, sampling, drawn)
        rows = len(tokens) + count - 1
        self._grow_scratch(range(-1, rows - 1))
        self.written()
        return found

    @torch.no_grad()
    def extend(self, tokens: Sequence[int]) -> Tensor:
        """Read and commit a run of tokens; returns the logits [V] after the last one."""
        if len(tokens) > PREFILL_ROWS:
            self.prefill(tokens[:-1])
            tokens = tokens[-1:]
        logits, _ = self._read(self._rows(tokens, range(-1, len(tokens) - 1)), last=1)
        self.commit(range(len(tokens)))
        return logits[-1]

    def commit(self, rows: Sequence[int]) -> None:
        """Keep these scratch rows, a path from the last committed token; drop the others."""
        self._cache.keep(self.length, list(rows))
        self.length += len(rows)
        self._clear_scratch()

    def _read(
        self, rows: Rows, last: int | None = None, layers: tuple[int, ...] | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """last: how many of the last rows need logits; None is all. layers: None is the usual."""
        features = self.features if layers is None else layers
        if self._slot and (last is None or 0 < last and len(rows.tokens) <= READ_AHEAD):
            found = self._slot.feed([rows], features)
            if found is not None:
                self.written()
                return found[0]
        self._cache.reserve(self.length + self.rows)
        device = self.model.device
        mask = RowMask(self.length, self._depths, rows.ancestors, device)
        given = torch.tensor(rows.tokens, device=device)
        if rows.ids is not None:
            given[1:] = rows.ids
        if self.model.lean is not None:
            return self.model.lean.forward(given, mask, self._cache, features, last)
        logits, states = forward(
            self.model.model,
            given[None],
            mask.row_positions[None],
            mask,
            self._cache,
            features,
            last,
        )
        return logits[0], None if states is None else states[0]

    def lay_out(self, draft: Draft) -> Rows:
        """Root and tree as a pass takes them; ``written`` follows one over several sequences."""
        tree = draft.tree
        return self._rows(*draft.rows, tree.ids, tree.shape, draft.question)

    def _rows(self, tokens: Sequence[int], parents: Sequence[int], *beside) -> Rows:
        """beside: the rest of what ``Rows`` holds."""
        self._grow_scratch(parents)
        ancestors = self._ancestors[-len(tokens) :]
        return Rows(tokens, self.length, self._depths, ancestors, *beside)

    def written(self) -> None:
        """All scratch rows stand in the cache now, at columns that were given."""
        self._cache.length = self.length + self.rows

    def _grow_scratch(self, parents: Sequence[int]) -> None:
        for row, parent in enumerate(parents, start=self.rows):
            above = (-1, 0) if parent < 0 else (self._depths[parent], self._ancestors[parent])
            self._depths.append(above[0] + 1)
            self._ancestors.append(above[1] | 1 << row)
