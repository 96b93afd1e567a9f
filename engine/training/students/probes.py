"""The base class of students that train probe rows: additional rows (token positions of a pass) after some positions
of a text, at which the frozen target predicts later tokens.

The target runs over the text once. Each probe row learns the law that the target itself has for one later token. The
i-th later token (from 0) has the weight 0.8^i in the loss. Gradients are computed only for the probe rows.

Letters in shapes: S windows, T tokens of each, A positions that are followed by probes, K later tokens that are
predicted, V vocabulary.
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

DECAY = 0.8  # the weight of a later place relative to the place before it


class ProbeStudent(Student):
    """The base class of students that train probe rows. The part's ``places`` is the number K of later tokens that the
    probes predict."""

    @staticmethod
    def asked_option(probes_are: str) -> Option:
        help = f"Places of a window behind which {probes_are} stand."
        return Option("asked", "int", 24, help, 1, 256)

    @abstractmethod
    def logits(self, part, tokens: Tensor, asked: Sequence[int]) -> Tensor:
        """The probes' logits, [S, A, K, V]. tokens: the windows, [S, T]. asked: the positions that are followed by
        probes, [A]. Probe i (from 0) after position t predicts the token at t + 2 + i."""

    def loss(self, part, lesson):
        last = (
            lesson.tokens.shape[1] - part.places - 1
        )  # all tokens that are predicted behind a place must lie in the window
        order = torch.randperm(last, generator=torch.Generator().manual_seed(lesson.index))
        places = order[: self.settings["asked"]].sort().values.tolist()
        logits = self.logits(part, lesson.tokens, places)
        losses = []
        for place in range(part.places):
            later = [
                at + place + 1 for at in places
            ]  # the target's rows that predict the tokens place + 2 places after those in ``asked``
            keep = lesson.counted[:, [at + 1 for at in later]].float().flatten()
            teacher = lesson.logits[:, later].flatten(0, 1)
            losses.append(
                DECAY**place * divergence_loss(logits[:, :, place].flatten(0, 1), teacher, keep)
            )
        return sum(losses) / part.places

    def accepted(self, part, lesson):
        """See ``Student.accepted``. The draft is a chain of the likeliest tokens, predicted by the probes after the
        token before the root."""
        tokens = lesson.tokens
        length = tokens.shape[1]
        best = self.logits(part, tokens, list(range(length - 1))).argmax(-1)  # [S, T - 1, K]
        padded = F.pad(tokens, (0, part.places), value=-1)  # nothing is right beyond the end
        truth = padded[:, 2:].unfold(1, part.places, 1)[:, : length - 1]  # [S, T - 1, K]
        right = (best == truth).flatten(0, 1)
        return F.pad(run_lengths(right).view(len(tokens), -1), (1, 0))


def added(sees: Tensor, dtype: torch.dtype) -> Tensor:
    """The mask that is added to the attention scores, [1, 1, R, C]. sees: bool [R, C], True where the row may attend
    to the column."""
    mask = torch.zeros(sees.shape, dtype=dtype, device=sees.device)
    return mask.masked_fill_(~sees, torch.finfo(dtype).min)[None, None]
