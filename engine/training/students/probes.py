"""Shared by students of probe rows: the frozen target reads a text once, and the rows after some of its places learn to
predict the tokens that the target would predict after reading on.

The loss is a distillation of the target's own distributions; place i counts 0.8^i. Only the probe rows are read with
gradients.

Letters in shapes: S windows, T tokens of each, A places with probes after them, K places of coming tokens, V
vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.options import Option
from engine.training.counted_acceptance import run_lengths
from engine.training.distill import divergence_loss
from engine.training.student import Student

DECAY = 0.8


class ProbeStudent(Student):
    """A student whose part has ``places``, as the drafter reads them."""

    @staticmethod
    def asked_option(probes_are: str) -> Option:
        help = f"Places of a window behind which {probes_are} stand."
        return Option("asked", "int", 24, help, 1, 256)

    @abstractmethod
    def logits(self, part, tokens: Tensor, asked: Sequence[int]) -> Tensor:
        """tokens [S, T], places ``asked`` [A] -> [S, A, K, V]: row i of a place is for the token i + 2 places after
        it."""

    def loss(self, part, lesson):
        last = (
            lesson.tokens.shape[1] - part.places - 1
        )  # a place must have its tokens in the window
        order = torch.randperm(last, generator=torch.Generator().manual_seed(lesson.index))
        asked = order[: self.settings["asked"]].sort().values.tolist()
        found = self.logits(part, lesson.tokens, asked)
        losses = []
        for place in range(part.places):
            later = [
                at + place + 1 for at in asked
            ]  # the target's rows for the tokens place + 2 places after
            keep = lesson.counted[:, [at + 1 for at in later]].float().flatten()
            teacher = lesson.logits[:, later].flatten(0, 1)
            losses.append(
                DECAY**place * divergence_loss(found[:, :, place].flatten(0, 1), teacher, keep)
            )
        return sum(losses) / part.places

    def accepted(self, part, lesson):
        """For chains of the likeliest tokens, predicted after the token before the root, as after any step."""
        tokens = lesson.tokens
        length = tokens.shape[1]
        best = self.logits(part, tokens, list(range(length - 1))).argmax(-1)  # [S, T - 1, K]
        padded = F.pad(tokens, (0, part.places), value=-1)  # nothing is right beyond the end
        told = padded[:, 2:].unfold(1, part.places, 1)[:, : length - 1]  # [S, T - 1, K]
        right = (best == told).flatten(0, 1)
        return F.pad(run_lengths(right).view(len(tokens), -1), (1, 0))


def added(sees: Tensor, dtype: torch.dtype) -> Tensor:
    """bool [R, C] -> the mask that is added to attention's scores, [1, 1, R, C]"""
    mask = torch.zeros(sees.shape, dtype=dtype, device=sees.device)
    return mask.masked_fill_(~sees, torch.finfo(dtype).min)[None, None]
