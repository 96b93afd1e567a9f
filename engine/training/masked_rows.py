"""Training of drafters that read masks behind a text: many masked continuations of each window share one pass.

A window has a row for each token of its text. A run of masks may stand behind each place of the text. The mask at depth
d learns the target's law of the token d + 1 places ahead, given the true text before that token. Averaged over texts,
this is the law given only the text before the masks, which is all that the mask can learn. A mask sees the text up to
its run's place, and the masks before it in its run.

Conditional drop (PARD, An et al., 2025; P-EAGLE, Hui et al., 2026): only a share of the places have a first mask, only
a share of these a second one, and so on. So a window has few rows, and the first masks count most.

Letters in shapes: S windows, T tokens of each, R rows, A places with a run, K tokens of a draft, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.training.counted_acceptance import run_lengths
from engine.training.divergences import forward_kl

SHARE, LEAST = 0.7, 0.2
"""SHARE: of the runs with d masks, how many have d + 1. LEAST: the least share of all places with d masks, for any d.
Both are speculators' values."""
AT_ONCE = 64  # how many runs are measured in one pass


@dataclass(frozen=True)
class MaskedRows:
    """The rows of a window. anchors: int64 [R], for each row, the place behind which its run of masks stands. depths:
    int64 [R], the depth of each row in its run, from 1; 0 for a row of the text, whose anchor is its own place."""

    anchors: Tensor
    depths: Tensor

    @property
    def places(self) -> Tensor:
        """The position of each row in the text, int64 [R]."""
        return self.anchors + self.depths

    @property
    def sees(self) -> Tensor:
        """The attention mask, bool [R, R]: which rows each row sees."""
        mine, other = self.anchors[:, None], self.anchors[None]
        text = (self.depths == 0)[None] & (other <= mine)
        return text | ((mine == other) & (self.depths[None] <= self.depths[:, None]))

    def filled(self, text: Tensor, mask: Tensor) -> Tensor:
        """The values of all rows, [S, R, ..]: ``text`` [S, T, ..] at rows of the text, ``mask`` [..] at rows of
        masks."""
        values = text[:, self.anchors]
        masked = (self.depths > 0).view(-1, *[1] * (text.dim() - 2))
        return torch.where(masked, mask.to(values.dtype), values)


def dropped(length: int, depth: int, index: int, device) -> MaskedRows:
    """The rows of a window of ``length`` tokens, with runs of at most ``depth`` - 1 masks after conditional drop.
    index: the random seed for the dropped masks."""
    order = torch.randperm(length, generator=torch.Generator().manual_seed(index))
    anchors, depths = [torch.arange(length)], [torch.zeros(length, dtype=torch.long)]
    for below in range(1, depth):
        count = int(length * max(SHARE**below, LEAST))
        fits = order[:count][order[:count] + below < length]
        anchors.append(fits)
        depths.append(torch.full_like(fits, below))
    return MaskedRows(torch.cat(anchors).to(device), torch.cat(depths).to(device))


def row_sets(depth: int) -> int:
    """How many rows per token of a window ``dropped`` makes, rounded up."""
    return math.ceil(1 + sum(max(SHARE**below, LEAST) for below in range(1, depth)))


def behind(length: int, places: Tensor, depth: int) -> MaskedRows:
    """The rows of a window of ``length`` tokens, with a run of ``depth`` - 1 masks behind each of these places [A]."""
    runs = places.repeat_interleave(depth - 1)
    steps = torch.arange(1, depth, device=places.device).repeat(len(places))
    text = torch.arange(length, device=places.device)
    return MaskedRows(torch.cat([text, runs]), torch.cat([torch.zeros_like(text), steps]))


def masked_loss(
    rows: MaskedRows,
    hidden: Tensor,
    head: Callable[[Tensor], Tensor],
    logits: Tensor,
    counted: Tensor,
) -> Tensor:
    """The mean of KL(p || q) over all rows whose next token counts. hidden: the drafter's states [S, R, H]. head:
    hidden states -> logits. logits: the target's, [S, T, V]; row t is for token t + 1. counted: bool [S, T]."""
    keep = F.pad(counted[:, 1:], (0, 1), value=False)[:, rows.places]
    windows, kept = keep.nonzero(as_tuple=True)
    log_p = logits.float().log_softmax(-1)[windows, rows.places[kept]]
    log_q = head(hidden[windows, kept]).float().log_softmax(-1)
    return forward_kl(log_q, log_p).sum() / max(1, len(log_q))


@torch.no_grad()
def masked_accepted(
    guess: Callable[[MaskedRows], Tensor], tokens: Tensor, places: int, depth: int
) -> Tensor:
    """For each token as the root, how many of ``depth`` tokens, drafted at once as a chain, match the text, int64 [S,
    T]; 0 for tokens at the end that are no roots. guess: rows -> the likeliest token [S, R] after each row. places: how
    many of the first tokens are roots."""
    padded = F.pad(tokens, (0, depth), value=-1)
    lengths = torch.zeros_like(tokens)
    for roots in torch.arange(places, device=tokens.device).split(AT_ONCE):
        best = guess(behind(places, roots, depth))
        masks = best[:, places:].unflatten(1, (len(roots), depth - 1))
        drafted = torch.cat([best[:, roots, None], masks], -1)
        steps = torch.arange(1, depth + 1, device=tokens.device)
        right = drafted == padded[:, roots[:, None] + steps]
        lengths[:, roots] = run_lengths(right.flatten(0, 1)).unflatten(0, (len(tokens), -1))
    return lengths
