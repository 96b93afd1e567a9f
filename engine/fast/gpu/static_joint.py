"""Sessions of one model whose buffers lie side by side, so that one pass reads rows of all sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch

from engine.batch.separate import SeparateSessions
from engine.batch.together import sessions_of
from engine.core.load import RowsOf
from engine.core.seen import Draft, Seen
from engine.core.target import of_layers
from engine.fast.gpu.inputs import DeviceRows, Size
from engine.fast.gpu.question import JudgedSeen, QuestionedDraft
from engine.fast.gpu.static_model import JoinedModel
from engine.fast.gpu.static_session import BufferedSession
from engine.model.session import Session

_IDLE = DeviceRows([0], 0, [0], [1])
"""The row that a pass has for a sequence without a draft. The row sees only itself and overwrites the first column."""


@dataclass(frozen=True)
class _Padded:
    """Counts the rows of a joint pass, in which every sequence, even one that has ended, gets as many rows as the
    largest draft needs. sequences: the number of sequences."""

    sequences: int

    def __call__(self, asked: Sequence[int]) -> int:
        rows = _rows(max(asked))
        return sum(asked) if rows is None else self.sequences * rows


@cache
def _rows(asked: int) -> int | None:
    """The number of rows that each sequence gets if the largest draft needs ``asked`` rows; None if no pass is large
    enough."""
    size = Size.of(asked, 0)
    return None if size is None else size.rows


class JointSessions(SeparateSessions):
    """The sessions of B sequences on common buffers. Each layer has keys and values [B, Hkv, C, D], for Hkv key-value
    heads of size D. C columns are enough for the longest text and a tree."""

    def __init__(
        self, model: JoinedModel, capacity: int, places: int, features: tuple[int, ...]
    ) -> None:
        super().__init__(model, capacity, places)
        self._layers = features
        self._idle = [_IDLE] * places
        self._begun: set[int] = set()  # places whose texts have been in a pass
        self._buffers = model.joint_buffer_sets().take(self, capacity, places)
        for place in range(places):
            self.open(place, ())

    def open(self, place: int, features: tuple[int, ...]) -> Session:
        self._begun.discard(place)
        row = self._buffers.cache.row(place)
        self.sessions[place] = BufferedSession(self.model, row, features)
        return self.sessions[place]

    @property
    def rows_of(self) -> RowsOf:
        return _Padded(len(self._idle))

    @torch.no_grad()
    def look_at(self, drafts: Mapping[int, Draft]) -> dict[int, Seen]:
        """Read the root and tree of each draft in one pass; returns the results by sequence.

        Instead, each sequence gets a pass of its own if some buffers do not exist yet, if a tree is larger than the
        largest pass, or if a draft has probes or contains rows that the drafter has already run through some layers of
        the target.
        """
        if not self._in_one_pass(drafts):
            return super().look_at(drafts)
        for index, draft in drafts.items():
            if self._idle[index].question is None and isinstance(draft, QuestionedDraft):
                self._idle[index] = replace(_IDLE, question=draft.question.of_nothing())
        self._begun |= drafts.keys()
        rows = [
            self.sessions[index].lay_out(drafts[index]) if index in drafts else self._idle_at(index)
            for index in range(len(self._idle))
        ]
        results = self._seen(rows)
        seen_by_index = {}
        for index in drafts:
            session, result = self.sessions[index], results[index]
            session.written()
            features = of_layers(result.features, self._layers, session.features)
            seen_by_index[index] = replace(result, features=features)
        return seen_by_index

    def _idle_at(self, index: int) -> DeviceRows:
        """The row that a pass has for a sequence without a draft. While the sequence's prompt is being read in parts,
        the row stands after the tokens read so far, so that it overwrites none of them."""
        ended = index in self._begun
        return replace(self._idle[index], prefix=0 if ended else self.sessions[index].length)

    def _seen(self, rows: list[DeviceRows]) -> list[Seen]:
        if all(sequence_rows.question is not None for sequence_rows in rows):
            outputs: list[JudgedSeen] | None = self._buffers.judge(rows, self._layers)
            if outputs is not None:
                return list(outputs)
        return [Seen(*outputs) for outputs in self._buffers.feed(rows, self._layers)]

    def _in_one_pass(self, drafts: Mapping[int, Draft]) -> bool:
        if not all(session.ready for session in self.sessions):
            return False
        if any(draft.probes is not None or draft.begun is not None for draft in drafts.values()):
            return False
        return Size.of(1 + max(len(draft.tree) for draft in drafts.values()), 0) is not None


@sessions_of.register
def _(
    model: JoinedModel, capacity: int, places: int, features, prompt: int = 0, own: bool = False
) -> SeparateSessions:
    return JointSessions(model, capacity, places, features)
