"""Makes lessons: batches of text with the target's hidden states and logits, from which a student learns.

On a GPU, the target computes each batch only once. As long as there is room, its hidden states stay on the GPU in
bfloat16. When the same batch comes again, its logits are computed anew from these states by the target's head alone.

Letters in shapes: S windows, T tokens of each, n feature layers, H hidden size.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedModel

from engine.training.student import Lesson, taught

ROOM = 0.6
"""The share of a GPU's free memory in which hidden states may be stored; the training needs the rest."""
SAME = 0.02
"""Hidden states are stored only if the logits computed from them agree with the logits of the target's pass. The mean
difference must be below this share of the logits' standard deviation."""


class _Kept(NamedTuple):
    """What is stored of a batch. features: [S, T, n*H]. states: [S, T, H], after the final norm. best: int32 [S, T],
    the target's likeliest tokens, or None."""

    features: Tensor
    states: Tensor
    best: Tensor | None


class Lessons:
    """Makes the lessons for a student from batches of tokens. layers: the indices in the target's hidden_states of the
    features. table: the only tokens for which a lesson has logits; None: all tokens."""

    def __init__(
        self, target: PreTrainedModel, layers: Sequence[int], table: Tensor | None
    ) -> None:
        self._target, self._layers = target, tuple(layers)
        self._table = None if table is None else table.to(target.device)
        self._kept: dict[Hashable, _Kept] = {}
        self._rows: Tensor | None = None
        self._room = 0.0
        if target.device.type == "cuda":
            self._room = ROOM * torch.cuda.mem_get_info(target.device)[0]

    def __call__(
        self, tokens: Tensor, counted: Tensor, index: int = 0, batch: Hashable | None = None
    ) -> Lesson:
        """The lesson of a batch. batch: a name for these tokens if the same batch will come again, so that its hidden
        states are stored; None if it will not."""
        kept = self._kept.get(batch)
        if kept is not None:
            device = self._target.device
            on_device = (rows.to(device, non_blocking=True) for rows in (tokens, counted))
            best = None if kept.best is None else kept.best.long()
            return Lesson(*on_device, kept.features.float(), self._logits(kept.states), index, best)
        if batch is None or self._room <= 0:
            return taught(self._target, self._layers, tokens, counted, index, self._table)
        return self._first(tokens, counted, index, batch)

    def _first(self, tokens: Tensor, counted: Tensor, index: int, batch: Hashable) -> Lesson:
        last = self._target.config.get_text_config(decoder=True).num_hidden_layers
        layers = (*self._layers, last)
        lesson = taught(self._target, layers, tokens, counted, index, self._table)
        width = lesson.features.shape[-1] // len(layers)
        features, states = lesson.features.to(torch.bfloat16).split(
            [width * len(self._layers), width], dim=-1
        )
        best = None if lesson.best is None else lesson.best.int()
        kept = _Kept(features.contiguous(), states.contiguous(), best)
        if self._rows is None and not self._made_of(lesson.logits, kept.states):
            self._room = 0.0  # this target's logits are more than its states times its head
        self._room -= sum(tensor.nbytes for tensor in kept if tensor is not None)
        if self._room > 0:
            self._kept[batch] = kept
        features = kept.features.float()  # rounded like those when the batch comes again
        return Lesson(lesson.tokens, lesson.counted, features, lesson.logits, index, lesson.best)

    def _made_of(self, logits: Tensor, states: Tensor) -> bool:
        head = self._target.get_output_embeddings()
        rows = head.weight if self._table is None else head.weight[self._table]
        self._rows = rows.to(torch.bfloat16)
        off = (self._logits(states).float() - logits.float()).abs().mean()
        return getattr(head, "bias", None) is None and bool(off < SAME * logits.float().std())

    @torch.no_grad()
    def _logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self._rows)
