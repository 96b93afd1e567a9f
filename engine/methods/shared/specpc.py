"""SpecPC and SpecKV-PC: use columns of the prompt's tokens to which a draft model attends.

Galim et al., Draft-based Approximate Inference for LLMs (ICLR 2026). SpecPC uses the columns of these tokens. SpecKV-PC
chooses, among these tokens, the columns to which the draft model's answer attends (``speckv``). In the paper the target
gets the chosen tokens as a shorter prompt. Here the target was run over the whole prompt, and a draft pass uses the
columns of the chosen tokens at their original positions.
"""

import torch
from torch import Tensor

from engine.methods.shared.selector import (
    OBSERVERS,
    ColumnSelector,
    Past,
    attention,
    best_and_recent,
    pooled,
)
from engine.methods.shared.speckv import SpecKV
from engine.model.cache_view import check_views

WIDER = 4  # how many tokens the first choice passes to the second, as a multiple of the budget


def asked_by_draft(past: Past) -> Tensor:
    """Return the draft model's attention to each of the text's T columns, [T]: the largest attention weight from any
    token at the end of the prompt, over all heads in the upper half of the draft model's layers. Weights from later
    tokens are multiplied by larger factors."""
    session, length = past.draft(), past.session.length
    check_views(session.model)
    queries, first = past.queries_of(session, OBSERVERS)
    later = torch.linspace(0, 1, len(past.tokens) - first + 1)[1:]
    most = torch.zeros(length)
    for layer in [*queries][len(queries) // 2 :]:
        weights = attention(queries[layer], session.columns(layer)[0][0], first)
        rows = weights.unflatten(1, (-1, len(later))) * later.to(weights.device)[:, None]
        most = torch.maximum(most, rows.amax((0, 1, 2))[:length].cpu())
    return most


class SpecPC(ColumnSelector):
    key = "specpc"
    claim = "SpecPC: more accurate than other ways to shorten a prompt, on RULER and LongBench (lossy there)"
    needs_draft = True

    def begin(self, past):
        self._scores = pooled(asked_by_draft(past)[None])

    def changes(self, past):
        return not self.places

    def columns(self, layer, keys):
        scores = self._scores.to(keys.device)
        return best_and_recent(scores, self.budget, min(OBSERVERS, self.budget // 2))


class SpecKVPC(SpecKV):
    key = "speckv_pc"
    claim = "SpecKV-PC: SpecKV on a prompt that SpecPC has shortened, at the same memory faster (lossy there)"

    def begin(self, past):
        super().begin(past)
        scores = pooled(asked_by_draft(past)[None])[0]
        self._left = scores.topk(min(len(scores), WIDER * self.budget)).indices

    def scores(self, layer, keys):
        scores = super().scores(layer, keys)
        penalty = torch.full_like(scores, -1.0)
        penalty[:, self._left.to(keys.device)] = 0.0
        return scores + penalty
