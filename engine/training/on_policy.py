"""Text that a draft writes itself while it is being trained: the prefixes that it will meet when it drafts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.core.sampling import pick


@torch.no_grad()
def continued(draft: nn.Module, given: Tensor, length: int, noise: torch.Generator) -> Tensor:
    """given int64 [S, P] -> int64 [S, length], P < length: the same texts, continued by draws at temperature 1."""
    text, cache = given, None
    while text.shape[1] < length:
        unread = text if cache is None else text[:, -1:]
        found = draft(input_ids=unread, past_key_values=cache, use_cache=True)
        cache = found.past_key_values
        q = found.logits[:, -1].float().softmax(-1)
        uniform = torch.rand(len(q), generator=noise, dtype=torch.float64).to(q.device)
        text = torch.cat([text, pick(q, uniform)[:, None]], 1)
    return text
