"""A head that knows some tokens of a vocabulary: fewer numbers are read for every drafted token.

Its rows are the target's own, so that no file holds them, rounded to 8 bits as parts are stored: on a processor that
multiplies by such rows they take half the time of fp32 rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.parts.eight_bit import rounded

NEVER = -1e4
"""The logit of a token that the head lacks; its probability is 0 unless only such tokens are allowed."""


class TrimmedHead(nn.Module):
    """H -> logits over a whole vocabulary, of which K tokens are known. tokens: int64 [K]."""

    def __init__(self, weight: Tensor, tokens: Tensor, vocabulary: int) -> None:
        """weight [K, H]: a row for each token. vocabulary: how many logits there are."""
        super().__init__()
        self.in_features, self.out_features = weight.shape[1], vocabulary
        self.weight = nn.Parameter(weight, requires_grad=False)
        places = torch.full((vocabulary,), len(tokens), device=weight.device)
        places[tokens] = torch.arange(len(tokens), device=weight.device)
        self.register_buffer("_places", places, persistent=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """[.., H] -> [.., vocabulary]"""
        known = F.pad(F.linear(hidden, self.weight), (0, 1), value=NEVER)
        return known.index_select(-1, self._places)


@torch.no_grad()
def rows_of(module: nn.Module, tokens: Tensor) -> Tensor:
    """The rows [K, H] of a model's head for these tokens [K], rounded to 8 bits. module: a transformers module."""
    weight = module.get_output_embeddings().weight
    return rounded(weight[tokens.to(weight.device)])


def trimmed_head(module: nn.Module, tokens: Tensor) -> TrimmedHead:
    """The head of a transformers module, cut to these tokens [K]."""
    weight = module.get_output_embeddings().weight
    tokens = tokens.to(weight.device)
    return TrimmedHead(rows_of(module, tokens), tokens, len(weight))
