"""Losses that compare a student's laws with the target's laws, and the windows of text on which they are computed.

Letters in shapes: S windows, T tokens of each, V vocabulary.
"""

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
    """The weighted mean of a divergence over N rows. student, teacher: logits [N, V]. weights: [N]."""
    log_p, log_q = F.log_softmax(teacher.float(), dim=-1), F.log_softmax(student.float(), dim=-1)
    return (divergence(log_q, log_p) * weights).sum() / weights.sum().clamp(min=1e-6)


class MixedWindows:
    """Windows of text, taken from several streams in turn. All windows are made at the beginning, and stay in memory
    or in a file."""

    def __init__(self, streams: Sequence[Iterator[tuple[np.ndarray, np.ndarray]]], count: int):
        """streams: endless iterators of windows, each as (tokens, counted), like those of `packing.windows`. count:
        how many windows are taken in all."""
        rows = [next(streams[i % len(streams)]) for i in range(count)]
        self.tokens, self.counted = map(np.stack, zip(*rows, strict=True))

    @classmethod
    def load(cls, path: Path) -> MixedWindows:
        mixed = cls.__new__(cls)
        with np.load(path) as saved:
            mixed.tokens = saved["tokens"]
            length = mixed.tokens.shape[1]
            mixed.counted = np.unpackbits(saved["counted"], axis=1, count=length).astype(bool)
        return mixed

    def save(self, path: Path) -> None:
        temporary = path.with_suffix(".tmp.npz")
        np.savez(temporary, tokens=self.tokens, counted=np.packbits(self.counted, axis=1))
        temporary.replace(path)

    def batch(self, index: int, rows: int) -> tuple[Tensor, Tensor]:
        """Batch `index`: the tokens, int64 [rows, length], and which of them enter the loss, bool [rows, length].
        After the last window follows the first again."""
        at = np.arange(index * rows, (index + 1) * rows) % len(self.tokens)
        return torch.from_numpy(self.tokens[at].astype(np.int64)), torch.from_numpy(
            self.counted[at]
        )


@torch.no_grad()
def read(target, tokens: Tensor):
    """The output of the target's forward pass over tokens int64 [S, T], with logits and the hidden states of all
    layers. All drafters in training learn from this one pass."""
    return target(input_ids=tokens, use_cache=False, output_hidden_states=True)


def draft_loss(
    draft, taught, tokens: Tensor, counted: Tensor, divergence: Divergence = forward_kl
) -> Tensor:
    """The mean divergence of the draft model from the target over all counted tokens. taught: the target's output for
    these tokens, from `read`. tokens: int64 [S, T]. counted: bool [S, T], True for tokens whose prediction enters the
    loss."""
    keep = counted[:, 1:].flatten()
    teacher = taught.logits[:, :-1].flatten(0, 1)[keep]
    student = draft(input_ids=tokens, use_cache=False).logits[:, :-1].flatten(0, 1)[keep]
    return divergence_loss(
        student, teacher, torch.ones(len(student), device=student.device), divergence
    )
