"""Sessions that read a sequence on static buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.core.sampling import Sampling
from engine.core.seen import Draft, Seen
from engine.fast.gpu.device_tree import DeviceTree
from engine.fast.gpu.inputs import DeviceRows
from engine.fast.gpu.question import QuestionedDraft
from engine.fast.gpu.static_attention import KernelRowMask
from engine.fast.gpu.static_cache import StaticCache
from engine.model.rows import Rows
from engine.model.session import Session

if TYPE_CHECKING:
    from engine.fast.gpu.static_model import JoinedModel, StaticModel

READ_AHEAD = 3  # more tokens than this are read as a prompt, in passes through the module


class BufferedSession(Session):
    """A session whose rows can be laid out for a pass over buffers of several sequences."""

    def __init__(self, model: JoinedModel, cache: StaticCache, features: tuple[int, ...]) -> None:
        super().__init__(model, cache, features)

    @property
    def ready(self) -> bool:
        """Whether the session's buffers exist, which the first pass allocates."""
        return self._cache.ready

    def lay_out(self, draft: Draft) -> DeviceRows:
        """Lay out the draft's root and tree as rows for a pass. The caller must run the pass. If it is a pass over
        several sequences, the caller must then call ``written``."""
        rows = self._rows(*draft.rows)
        tree, question = draft.tree, None
        if isinstance(draft, QuestionedDraft):
            question = draft.question
        ids = tree.ids if isinstance(tree, DeviceTree) else None
        return DeviceRows(rows.tokens, rows.prefix, rows.depths, rows.ancestors, ids, question)

    def written(self) -> None:
        """Set the length of the cache so that it includes all scratch rows. The caller must have run a pass that wrote
        these rows to their columns."""
        self._cache.length = self.length + self.rows

    @torch.no_grad()
    def look(self, draft: Draft) -> Seen:
        if draft.probes is not None or draft.begun is not None:
            return super().look(draft)
        return Seen(*self._read(self.lay_out(draft)))

    def _tokens(self, rows: Rows) -> Tensor:
        tokens = super()._tokens(rows)
        if isinstance(rows, DeviceRows) and rows.ids is not None:
            tokens[1:] = rows.ids
        return tokens

    def _mask(self, rows: Rows) -> KernelRowMask:
        return KernelRowMask(self.length, self._depths, rows.ancestors, self.model.device)


class StaticSession(BufferedSession):
    """A session of one sequence on a buffer set of its own."""

    def __init__(self, model: StaticModel, capacity: int, features: tuple[int, ...]) -> None:
        self._buffers = model.buffer_sets.take(self, capacity)
        super().__init__(model, self._buffers.cache, features)

    @torch.no_grad()
    def look(self, draft: Draft) -> Seen:
        """Read a root and a tree in one pass. The pass also judges the tree if the draft is a ``QuestionedDraft`` and
        the buffers can run a judging pass."""
        if isinstance(draft, QuestionedDraft) and draft.probes is None and draft.begun is None:
            results = self._buffers.judge([self.lay_out(draft)], self.features)
            if results is not None:
                self.written()
                return results[0]
            self._clear_scratch()
        return super().look(draft)

    @torch.no_grad()
    def write(
        self,
        tokens: Sequence[int],
        count: int,
        vocabulary: int,
        sampling: Sampling,
        drawn: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Read tokens after the committed ones, and then draft a chain of ``count`` tokens, each among the first
        ``vocabulary`` ids.

        Returns the drafted tokens, int32 [count], and the distributions that they were drawn from, [count, V], or None
        at temperature 0; both are on the device. drawn: one uniform number per drafted token; None at temperature 0.

        If ``tokens`` has more than READ_AHEAD entries, all but the last are committed. Afterwards the scratch rows are
        a chain: the tokens that were not committed, and then all drafted tokens but the last.
        """
        if len(tokens) > READ_AHEAD:
            self.prefill(tokens[:-1])
            tokens = tokens[-1:]
        tokens = self.model.readable(tokens)
        drafted = self._buffers.write(tokens, self.length, count, vocabulary, sampling, drawn)
        rows = len(tokens) + count - 1
        self._grow_scratch(range(-1, rows - 1))
        self.written()
        return drafted

    def _read(
        self,
        rows: Rows,
        last: int | None = None,
        layers: tuple[int, ...] | None = None,
        vectors: Tensor | None = None,
    ) -> tuple[Tensor | None, Tensor | None]:
        features = self.features if layers is None else layers
        short = last is None or (0 < last and len(rows.tokens) <= READ_AHEAD)
        if vectors is None and short:
            device_rows = rows
            if not isinstance(rows, DeviceRows):
                device_rows = DeviceRows(rows.tokens, rows.prefix, rows.depths, rows.ancestors)
            results = self._buffers.feed([device_rows], features)
            if results is not None:
                self.written()
                return results[0]
        return super()._read(rows, last, layers, vectors)
