"""Models that keep a recurrent state as well as keys and values: a mix of attention and state-space layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.model.cache import KVLayer
from engine.model.language_model import LanguageModel
from engine.model.layers import Passed
from engine.model.own_attention import no_layers
from engine.model.row_mask import RowMask
from engine.model.rows import Rows
from engine.model.session import Session
from engine.model.states import HybridCache, Lineage, StateLayer, mixers_of, tree_forward


class HybridModel(LanguageModel):
    """A language model that remembers a text as keys and values, and in some layers as a recurrent state.

    The module's mixers, which hold the state, get a new forward that handles trees. With any cache other than a
    ``HybridCache``, a mixer still runs its own forward.
    """

    holds_branches = False

    def __init__(self, model: PreTrainedModel, tokenizer, name: str) -> None:
        super().__init__(model, tokenizer, name)
        self.mixers = mixers_of(model)
        for mixer in self.mixers.values():
            mixer.forward = tree_forward(mixer, type(mixer).forward.__get__(mixer))

    def session(self, capacity: int, features: Sequence[int] = ()) -> HybridSession:
        layers = [KVLayer(capacity) for _ in range(self.cache_layers)]
        states = {index: StateLayer(mixer) for index, mixer in self.mixers.items()}
        return HybridSession(self, HybridCache(layers, states), tuple(features))

    def uncompiled(self, module: PreTrainedModel) -> LanguageModel:
        return self.reopened(module)


class HybridSession(Session):
    """A ``Session`` of a ``HybridModel``. A state cannot be rewound to an earlier token, so to rewind, the session
    reads the text again from its start."""

    prefill_rows = 128  # a pass holds the transitions between all pairs of its rows, for every head

    def __init__(self, model: HybridModel, cache: HybridCache, features: tuple[int, ...]) -> None:
        self._text: list[int] = []  # committed tokens
        self._scratch: list[int] = []
        # of each layer with a state: the totals [S, H] of the scratch rows at the last commit
        self._totals: list[Tensor] = []
        super().__init__(model, cache, features)

    def _clear_scratch(self) -> None:
        super()._clear_scratch()
        self._scratch = []

    def _rows(self, tokens: Sequence[int], parents: Sequence[int]) -> Rows:
        self._scratch += [int(token) for token in tokens]
        return super()._rows(tokens, parents)

    def _forward(
        self, inputs: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        self._cache.lineage = Lineage(mask)
        return super()._forward(inputs, mask, features, last)

    def commit(self, rows: Sequence[int]) -> None:
        states = self._cache.states.values()
        scratch = [state.scratch for state in states if state.scratch is not None]
        if scratch:
            self._totals = [rows.totals for rows in scratch]
        self._text = self._text[: self.length] + [self._scratch[row] for row in rows]
        super().commit(rows)

    @property
    def transitions(self) -> Tensor | None:
        """The share of the committed state that was left after each scratch row: [S, L], for the S scratch rows at the
        last commit and the L layers with a state, in the mean over a layer's heads. None before the first commit with
        scratch rows."""
        if not self._totals:
            return None
        return torch.stack([totals.exp().mean(-1) for totals in self._totals], -1)

    def take_over(self, other: HybridSession, length: int) -> None:
        if length != other.length:
            self.prefill(other._text[:length], layers=())
            return
        super().take_over(other, length)
        self._text = other._text[:length]
        for index, state in self._cache.states.items():
            state.take_over(other._cache.states[index])

    def rewind(self, length: int) -> None:
        if length >= self.length:
            self.drop()
            return
        text = self._text[:length]
        self.drop()
        for state in self._cache.states.values():
            state.forget()
        self.length = 0
        self.drop()
        self.prefill(text, layers=())

    def _through(self, *_, **__) -> Passed:
        raise no_layers(self.model.name)
