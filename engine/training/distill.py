"""Losses against the target's whole distribution, and the windows of text they are taken on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from . import selftext
from .packing import Mixer, windows


def forward_kl(student: Tensor, teacher: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean over rows of KL(teacher || student); logits [N, V], weights [N].

    Forward, because sampled acceptance is the overlap of p and q: the student must cover what the target may say.
    """
    log_p, log_q = F.log_softmax(teacher.float(), dim=-1), F.log_softmax(student.float(), dim=-1)
    divergence = (log_p.exp() * (log_p - log_q)).sum(-1)
    return (divergence * weights).sum() / weights.sum().clamp(min=1e-6)


class MixedWindows:
    """Windows of text the target wrote, every `corpus_every`-th from the corpora instead; made once, kept in memory."""

    def __init__(
        self,
        path: Path,
        tokenizer,
        data: Path,
        length: int,
        count: int,
        seed: int,
        corpus_every: int = 2,
    ):
        own = windows(selftext.load(path).documents(seed).__next__, length, seed)
        corpus = windows(Mixer(tokenizer, data, 500 + seed), length, seed)
        rows = [next(corpus if i % corpus_every == corpus_every - 1 else own) for i in range(count)]
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
    """The target's logits and hidden states of all layers: one forward that teaches every drafter."""
    return target(input_ids=tokens, use_cache=False, output_hidden_states=True)


def draft_loss(draft, taught, tokens: Tensor, counted: Tensor) -> Tensor:
    """KL to the target at every counted position. tokens int64 [S, T]; taught: what `read` gave."""
    keep = counted[:, 1:].flatten()
    teacher = taught.logits[:, :-1].flatten(0, 1)[keep]
    student = draft(input_ids=tokens, use_cache=False).logits[:, :-1].flatten(0, 1)[keep]
    return forward_kl(student, teacher, torch.ones(len(student)))
