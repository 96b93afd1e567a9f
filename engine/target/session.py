"""A sequence that a language model is reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.target.cache import KVCache
from engine.target.forward import forward
from engine.target.row_mask import RowMask
from engine.target.rows import Rows
from engine.target.seen import Draft, Seen

if TYPE_CHECKING:
    from engine.target.language_model import LanguageModel

PREFILL_ROWS = 512  # rows of one prefill pass; bounds the mask and the activations


class Session:
    """One sequence being read: committed columns, and the scratch rows of the running step.

    Rows are numbered from 0 since the last commit. Each has a parent row, or -1 for the last
    committed token, and sees the committed columns, its ancestors and itself.
    """

    prefill_rows = PREFILL_ROWS

    def __init__(self, model: LanguageModel, cache: KVCache, features: tuple[int, ...]) -> None:
        """cache: empty. features: indices into hidden_states to hand back with each feed."""
        self.model = model
        self.features = features
        self.length = 0
        self._cache = cache
        self._clear_scratch()

    def _clear_scratch(self) -> None:
        self._depths: list[int] = []
        self._ancestors: list[int] = []  # bit s of an entry: the row sees scratch row s

    @property
    def rows(self) -> int:
        """Scratch rows fed since the last commit."""
        return len(self._depths)

    @torch.no_grad()
    def prefill(
        self, tokens: Sequence[int], layers: tuple[int, ...] | None = None
    ) -> Tensor | None:
        """Read and commit tokens without logits; returns their features [T, n*H] or None.

        layers: whose features; None is those of every feed.
        """
        layers, parts = self.features if layers is None else layers, []
        for start in range(0, len(tokens), self.prefill_rows):
            chunk = tokens[start : start + self.prefill_rows]
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
    def look(self, draft: Draft) -> Seen:
        """Read a root and a tree in one pass."""
        return Seen(*self._read(self._rows(*draft.rows)))

    @torch.no_grad()
    def extend(self, tokens: Sequence[int]) -> Tensor:
        """Read and commit a run of tokens; returns the logits [V] after the last one."""
        if len(tokens) > self.prefill_rows:
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

    def drop(self) -> None:
        """Forget all scratch rows."""
        self.commit(())

    def rewind(self, length: int) -> None:
        """Forget all scratch rows, and the committed tokens beyond the first ``length``."""
        self.length = min(self.length, length)
        self.drop()

    def _read(
        self, rows: Rows, last: int | None = None, layers: tuple[int, ...] | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """last: how many of the last rows need logits; None is all. layers: None is the usual."""
        features = self.features if layers is None else layers
        self._cache.reserve(self.length + self.rows)
        return self._forward(self._tokens(rows), self._mask(rows), features, last)

    def _tokens(self, rows: Rows) -> Tensor:
        return torch.tensor(rows.tokens, device=self.model.device)

    def _mask(self, rows: Rows) -> RowMask:
        return RowMask(self.length, self._depths, rows.ancestors, self.model.device)

    def _forward(
        self, tokens: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        positions = mask.row_positions[None]
        logits, states = forward(
            self.model.model, tokens[None], positions, mask, self._cache, features, last
        )
        return logits[0], None if states is None else states[0]

    def _rows(self, tokens: Sequence[int], parents: Sequence[int]) -> Rows:
        self._grow_scratch(parents)
        return Rows(tokens, self.length, self._depths, self._ancestors[-len(tokens) :])

    def _grow_scratch(self, parents: Sequence[int]) -> None:
        for row, parent in enumerate(parents, start=self.rows):
            above = (-1, 0) if parent < 0 else (self._depths[parent], self._ancestors[parent])
            self._depths.append(above[0] + 1)
            self._ancestors.append(above[1] | 1 << row)
