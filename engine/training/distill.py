"""Losses against the target's whole distribution, and the windows of text on which they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.training.divergences import Divergence, forward_kl


def divergence_loss(
    student: Tensor, teacher: Tensor, weights: Tensor, divergence: Divergence = forward_kl
) -> Tensor:
    """Weighted mean over rows; logits [N, V], weights [N]."""
    log_p, log_q = F.log_softmax(teacher.float(), dim=-1), F.log_softmax(student.float(), dim=-1)
    return (divergence(log_q, log_p) * weights).sum() / weights.sum().clamp(min=1e-6)


class MixedWindows:
    """Windows of several streams in turn; made once, kept in memory."""

    def __init__(self, streams: Sequence[Iterator[tuple[np.ndarray, np.ndarray]]], count: int):
        """streams: each endless, as `packing.windows` gives them."""
        rows = [next(streams[i % len(streams)]) for i in range(count)]
        self.tokens = np.stack([r[0] for r in rows])
        self.counted = np.stack([r[1] for r in rows])

    def batch(self, index: int, rows: int) -> tuple[Tensor, Tensor]:
        """tokens int64 [rows, length], counted bool [rows, length] of batch `index`; wraps around."""
        at = np.arange(index * rows, (index + 1) * rows) % len(self.tokens)
        return torch.from_numpy(self.tokens[at].astype(np.int64)), torch.from_numpy(
            self.counted[at]
        )


@torch.no_grad()
def read(target, tokens: Tensor):
    """The target's logits and hidden states of all layers: one forward pass that teaches every drafter."""
    return target(input_ids=tokens, use_cache=False, output_hidden_states=True)


def draft_loss(
    draft, taught, tokens: Tensor, counted: Tensor, divergence: Divergence = forward_kl
) -> Tensor:
    """Divergence from the target at every counted position. tokens int64 [S, T]; taught: the result of
    `read`."""
    keep = counted[:, 1:].flatten()
    teacher = taught.logits[:, :-1].flatten(0, 1)[keep]
    student = draft(input_ids=tokens, use_cache=False).logits[:, :-1].flatten(0, 1)[keep]
    return divergence_loss(
        student, teacher, torch.ones(len(student), device=student.device), divergence
    )
