"""Losses against the target's whole distribution, and the windows of text on which they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

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
    """Windows of several streams in turn; made once, kept in memory, or in a file."""

    def __init__(self, streams: Sequence[Iterator[tuple[np.ndarray, np.ndarray]]], count: int):
        """streams: each endless, as `packing.windows` gives them."""
        rows = [next(streams[i % len(streams)]) for i in range(count)]
        self.tokens, self.counted = map(np.stack, zip(*rows, strict=True))

    @classmethod
    def load(cls, path: Path) -> MixedWindows:
        made = cls.__new__(cls)
        with np.load(path) as saved:
            made.tokens = saved["tokens"]
            length = made.tokens.shape[1]
            made.counted = np.unpackbits(saved["counted"], axis=1, count=length).astype(bool)
        return made

    def save(self, path: Path) -> None:
        temporary = path.with_suffix(".tmp.npz")
        np.savez(temporary, tokens=self.tokens, counted=np.packbits(self.counted, axis=1))
        temporary.replace(path)

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
