"""Sessions of one model whose buffers lie side by side, so that one pass reads rows of all of them."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from engine.forward import of_layers
from engine.language_model import LanguageModel
from engine.session import Session
from engine.static.inputs import Rows, Size
from engine.tree import DraftTree
from engine.writing import look_at, rows_of

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
    def look_at(
        self, drafts: Mapping[int, tuple[int, DraftTree]]
    ) -> dict[int, tuple[Tensor, Tensor | None]]:
        """One pass over root and tree of each of these sequences, by index: logits and features as
        of ``Session.feed``. Before all buffers exist, and with a tree larger than the largest pass,
        it is one pass each."""
        if not self._in_one_pass(drafts):
            return {
                index: look_at(self.sessions[index], root, tree)
                for index, (root, tree) in drafts.items()
            }
        rows = [_IDLE] * len(self.sessions)
        for index, (root, tree) in drafts.items():
            rows[index] = self.sessions[index].lay_out(*rows_of(root, tree), tree.ids)
        found = self._slot.feed(rows, self._layers)
        looked = {}
        for index in drafts:
            session, (logits, states) = self.sessions[index], found[index]
            session.written()
            looked[index] = logits, of_layers(states, self._layers, session.features)
        return looked

    def _in_one_pass(self, drafts: Mapping[int, tuple[int, DraftTree]]) -> bool:
        if self._slot is None or not all(session.ready for session in self.sessions):
            return False
        return Size.of(1 + max(len(tree) for _, tree in drafts.values()), 0) is not None
