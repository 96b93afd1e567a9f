"""Sessions of one model whose buffers lie side by side, so that one pass reads rows of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from engine.gpu.inputs import Rows, Size
from engine.gpu.question import Draft, Looked
from engine.target.forward import of_layers
from engine.target.language_model import LanguageModel
from engine.target.session import Session

_IDLE = Rows([0], 0, [0], [1])
"""What a sequence that has ended gives to a pass: a row that sees itself, over its first column."""


class Joint:
    """B sessions. Buffers [B, Hkv, C, D] a layer, C enough for the longest of the texts and a tree.

    A model that runs lean has sessions of their own instead, and reads for one after the other.
    """

    def __init__(
        self, model: LanguageModel, capacity: int, features: Sequence[tuple[int, ...]]
    ) -> None:
        """features: of each sequence, as for a Session."""
        self._layers = tuple(sorted({layer for layers in features for layer in layers}))
        self._slot = None
        self._idle = [_IDLE] * len(features)
        caches = [None] * len(features)
        if model.lean is None:
            slots = model.slots or model.new_slots(captures=False)
            self._slot = slots.take(self, capacity, len(features))
            caches = [self._slot.cache.row(index) for index in range(len(features))]
        self.sessions = [
            Session(model, capacity, tuple(layers), cache)
            for layers, cache in zip(features, caches, strict=True)
        ]

    @torch.no_grad()
    def look_at(self, drafts: Mapping[int, Draft]) -> dict[int, Looked]:
        """One pass over root and tree of each of these sequences, by index, as ``Session.look``
        makes it of one. Before all buffers exist, and with a tree larger than the largest pass, it
        is one pass each."""
        if not self._in_one_pass(drafts):
            return {index: self.sessions[index].look(draft) for index, draft in drafts.items()}
        for index, draft in drafts.items():
            if self._idle[index].question is None and draft.question is not None:
                self._idle[index] = replace(_IDLE, question=draft.question.of_nothing())
        rows = [
            self.sessions[index].lay_out(drafts[index]) if index in drafts else idle
            for index, idle in enumerate(self._idle)
        ]
        found = self._looked(rows)
        looked = {}
        for index in drafts:
            session, its = self.sessions[index], found[index]
            session.written()
            features = of_layers(its.features, self._layers, session.features)
            looked[index] = replace(its, features=features)
        return looked

    def _looked(self, rows: list[Rows]) -> list[Looked]:
        if all(one.question is not None for one in rows):
            found = self._slot.judge(rows, self._layers)
            if found is not None:
                return found
        return [Looked(*found) for found in self._slot.feed(rows, self._layers)]

    def _in_one_pass(self, drafts: Mapping[int, Draft]) -> bool:
        if self._slot is None or not all(session.ready for session in self.sessions):
            return False
        return Size.of(1 + max(len(draft.tree) for draft in drafts.values()), 0) is not None
