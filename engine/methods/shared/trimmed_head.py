"""A head trimmed to some tokens of the vocabulary, so that each drafted token takes less time.

The rows of the trimmed head are rows of the target's own head, so no file has to store them. They are rounded to 8
bits, like the weights in stored files, because a processor that can multiply 8-bit rows needs half the time of fp32
rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.parts.eight_bit import rounded

NEVER = -1e4
"""The logit of a token without a row. The token's probability is 0, unless a constraint allows only tokens without a
row."""


class TrimmedHead(nn.Module):
    """A linear head with rows for K tokens, whose logits cover the whole vocabulary. tokens: int64 [K], the token of
    each row."""

    def __init__(self, weight: Tensor, tokens: Tensor, vocabulary: int) -> None:
        """weight: [K, H], a row for each of ``tokens``. vocabulary: the size of the whole vocabulary."""
        super().__init__()
        self.in_features, self.out_features = weight.shape[1], vocabulary
        self.weight = nn.Parameter(weight, requires_grad=False)
        places = torch.full((vocabulary,), len(tokens), device=weight.device)
        places[tokens] = torch.arange(len(tokens), device=weight.device)
        self.register_buffer("_places", places, persistent=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Hidden states [.., H] -> logits [.., vocabulary]; a token without a row has the logit ``NEVER``."""
        logits = F.pad(F.linear(hidden, self.weight), (0, 1), value=NEVER)
        return logits.index_select(-1, self._places)


@torch.no_grad()
def rows_of(module: nn.Module, tokens: Tensor) -> Tensor:
    """Return the rows [K, H] of a model's head for these tokens [K], rounded to 8 bits. module: a transformers
    module."""
    weight = module.get_output_embeddings().weight
    return rounded(weight[tokens.to(weight.device)])


def trimmed_head(module: nn.Module, tokens: Tensor) -> TrimmedHead:
    """Return the head of a transformers module, trimmed to these tokens [K]."""
    weight = module.get_output_embeddings().weight
    tokens = tokens.to(weight.device)
    return TrimmedHead(rows_of(module, tokens), tokens, len(weight))
