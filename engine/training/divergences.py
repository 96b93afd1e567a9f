"""Losses between a draft model's law q and the target's law p, by name.

Zhou et al., DistillSpec (2024) compares the first four losses for draft models. Goel et al., Direct Alignment of Draft
Model for Speculative Decoding with Chat-Fine-Tuned LLMs (2024) adds TVD++.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from engine.core.sampling import pick

DRAWS = 16  # draws from q at each place, from which TVD++ estimates its gradient


def forward_kl(log_q: Tensor, log_p: Tensor) -> Tensor:
    """KL(p || q) of N rows of log-probabilities [N, V] -> [N]. It makes q cover all tokens that p allows."""
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def reverse_kl(log_q: Tensor, log_p: Tensor) -> Tensor:
    """KL(q || p) of N rows of log-probabilities [N, V] -> [N]. It keeps q away from tokens to which p gives little."""
    return (log_q.exp() * (log_q - log_p)).sum(-1)


def jensen_shannon(log_q: Tensor, log_p: Tensor) -> Tensor:
    """The Jensen-Shannon divergence of N rows of log-probabilities [N, V] -> [N]: the mean of KL(p || m) and KL(q ||
    m), where m is the mean of p and q. It is bounded."""
    middle = ((log_q.exp() + log_p.exp()) / 2).clamp(min=1e-30).log()
    return (forward_kl(middle, log_p) + forward_kl(middle, log_q)) / 2


def total_variation(log_q: Tensor, log_p: Tensor) -> Tensor:
    """Half the L1 distance of p and q, for N rows of log-probabilities [N, V] -> [N]. It is the chance that one token
    drawn from q is rejected (Leviathan et al., 2023)."""
    return 0.5 * (log_q.exp() - log_p.exp()).abs().sum(-1)


Divergence = Callable[[Tensor, Tensor], Tensor]
DIVERGENCES: dict[str, Divergence] = {
    "forward_kl": forward_kl,
    "reverse_kl": reverse_kl,
    "jensen_shannon": jensen_shannon,
    "total_variation": total_variation,
}


def tvd_plus_plus(
    log_q: Tensor, log_p: Tensor, noise: torch.Generator, draws: int = DRAWS, reduced: bool = True
) -> Tensor:
    """TVD++ for rows of log-probabilities [N, V] -> [N]: a loss whose gradient estimates that of the total variation,
    as a policy gradient. The value of the loss itself means nothing.

    The total variation's gradient is the mean of -r(x) d log q(x) over x drawn from q, where the reward r(x) is 1 if
    p(x) > q(x), else 0. TVD++ normalises the rewards of all draws of the batch to mean 0 and standard deviation 1.
    noise: the source of the draws. draws: how many per row. reduced: whether the rewards are normalised.
    """
    uniform = torch.rand(draws, len(log_q), generator=noise, dtype=torch.float64).to(log_q.device)
    with torch.no_grad():
        drawn = pick(log_q.exp().expand(draws, -1, -1), uniform).T
        rewards = (log_p.gather(-1, drawn) > log_q.gather(-1, drawn)).to(log_q.dtype)
        if reduced:
            rewards = (rewards - rewards.mean()) / rewards.std(correction=0).clamp(min=1e-6)
    return -(rewards * log_q.gather(-1, drawn)).mean(-1)


TVD_PLUS_PLUS = "tvd_plus_plus"
LOSSES = (*DIVERGENCES, TVD_PLUS_PLUS)


def loss_named(name: str, index: int) -> Divergence:
    """The loss of this name for batch `index`; its random draws depend on the index alone."""
    if name != TVD_PLUS_PLUS:
        return DIVERGENCES[name]
    return partial(tvd_plus_plus, noise=torch.Generator().manual_seed(index))
