"""Losses whose gradient is computed chunk by chunk in the forward pass, so that the logits of a whole batch are never
held at once."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.training.products import product

CHUNK = 1024


def likely(logits: Tensor, wanted: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy. logits [n, V], wanted int64 [n], weights [n] -> weighted sum of losses, its gradient with respect
    to the logits."""
    dtype, logits = logits.dtype, logits.float()
    total = torch.logsumexp(logits, -1)
    losses = total - logits.gather(1, wanted[:, None])[:, 0]
    hit = torch.arange(logits.shape[1], device=logits.device) == wanted[:, None]
    gradient = (torch.exp(logits - total[:, None]) - hit.float()) * weights[:, None]
    return (losses * weights).sum(), gradient.to(dtype)


def likely_and_unlikely(
    logits: Tensor, wanted: Tensor, weights: Tensor, unwanted: Tensor, unlikely_weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the wanted tokens and unlikelihood, -log(1 - p), of the unwanted ones (Welleck et al., "Neural
    Text Generation with Unlikelihood Training", 2020)."""
    dtype, logits = logits.dtype, logits.float()
    total = torch.logsumexp(logits, -1)
    losses = total - logits.gather(1, wanted[:, None])[:, 0]
    places = torch.arange(logits.shape[1], device=logits.device)
    hit, missed = places == wanted[:, None], places == unwanted[:, None]
    # 1 - p is summed over the other tokens, so that it keeps its precision where p is nearly one.
    others = torch.where(missed, float("-inf"), logits)
    rest = torch.logsumexp(others, -1)
    pushed = unlikely_weights * torch.exp(logits.gather(1, unwanted[:, None])[:, 0] - total)
    gradient = (torch.exp(logits - total[:, None]) - hit.float()) * weights[:, None] + (
        missed.float() - torch.exp(others - rest[:, None])
    ) * pushed[:, None]
    return (losses * weights + (total - rest) * unlikely_weights).sum(), gradient.to(dtype)


class ChunkedLoss(torch.autograd.Function):
    """apply(gradient_of, hidden [N, H], embedding [V, H], *what else gradient_of takes [N]) -> weighted sum"""

    @staticmethod
    def forward(ctx, gradient_of, hidden, embedding, *rest):
        by_hidden = torch.empty_like(hidden)
        by_embedding = torch.zeros(embedding.shape)
        loss = torch.zeros(())
        for i in range(0, len(hidden), CHUNK):
            part = slice(i, i + CHUNK)
            logits = product(hidden[part], embedding.T)
            added, gradient = gradient_of(logits, *(x[part] for x in rest))
            loss += added
            by_hidden[part] = product(gradient, embedding)
            by_embedding += product(gradient.T, hidden[part])
        ctx.save_for_backward(by_hidden, by_embedding.to(embedding.dtype))
        ctx.others = len(rest)
        return loss

    @staticmethod
    def backward(ctx, scale):
        """The loss itself is minimised, so `scale` is one."""
        return None, *ctx.saved_tensors, *[None] * ctx.others
