"""Training of drafters that read masks behind a text: many masked continuations of each window share one pass.

A window's own rows are its text. Behind each of its places may stand a run of masks; the mask at depth d learns the target's
law of the token d + 1 places ahead, given the true text up to there. Averaged over texts, this is the law given the text before
the masks alone, which is all that it can know. A mask sees the text up to its place and the masks before it in its run.

Conditional drop (PARD, An et al., 2025; P-EAGLE, Hui et al., 2026): all runs have a first mask only in a share of the places,
a second one in a share of those, and so on, so that the rows of a window stay few, and the first masks count most.

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
"""The share of the runs that have one more mask; the least share of the places that have so many (speculators' values)."""
AT_ONCE = 64  # runs that are measured in one pass


@dataclass(frozen=True)
class MaskedRows:
    """anchors, depths: int64 [R], of each row the place behind which its run stands, and its depth there; 0: a row of the text."""

    anchors: Tensor
    depths: Tensor

    @property
    def places(self) -> Tensor:
        """int64 [R], in the text."""
        return self.anchors + self.depths

    @property
    def sees(self) -> Tensor:
        """bool [R, R]: which rows each row sees."""
        mine, other = self.anchors[:, None], self.anchors[None]
        text = (self.depths == 0)[None] & (other <= mine)
        return text | ((mine == other) & (self.depths[None] <= self.depths[:, None]))

    def filled(self, text: Tensor, mask: Tensor) -> Tensor:
        """text [S, T, ..] at the rows of the text, the mask [..] at all others: [S, R, ..]"""
        found = text[:, self.anchors]
        masked = (self.depths > 0).view(-1, *[1] * (text.dim() - 2))
        return torch.where(masked, mask.to(found.dtype), found)


def dropped(length: int, depth: int, index: int, device) -> MaskedRows:
    """The rows of a window of so many tokens, with runs of fewer than ``depth`` masks. index: decides which are left out."""
    order = torch.randperm(length, generator=torch.Generator().manual_seed(index))
    anchors, depths = [torch.arange(length)], [torch.zeros(length, dtype=torch.long)]
    for below in range(1, depth):
        count = int(length * max(SHARE**below, LEAST))
        fits = order[:count][order[:count] + below < length]
        anchors.append(fits)
        depths.append(torch.full_like(fits, below))
    return MaskedRows(torch.cat(anchors).to(device), torch.cat(depths).to(device))


def row_sets(depth: int) -> int:
    """For each token of a window, how many rows ``dropped`` makes, rounded up."""
    return math.ceil(1 + sum(max(SHARE**below, LEAST) for below in range(1, depth)))


def behind(length: int, places: Tensor, depth: int) -> MaskedRows:
    """The rows of a window, with a whole run behind each of these places [A]."""
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
    """The mean distance from the target's laws. hidden [S, R, H] of the drafter, logits [S, T, V] of the target, counted bool
    [S, T]; row t of the target is for token t + 1."""
    keep = F.pad(counted[:, 1:], (0, 1), value=False)[:, rows.places]
    windows, kept = keep.nonzero(as_tuple=True)
    log_p = logits.float().log_softmax(-1)[windows, rows.places[kept]]
    log_q = head(hidden[windows, kept]).float().log_softmax(-1)
    return forward_kl(log_q, log_p).sum() / max(1, len(log_q))


@torch.no_grad()
def masked_accepted(
    guess: Callable[[MaskedRows], Tensor], tokens: Tensor, places: int, depth: int
) -> Tensor:
    """int64 [S, T]: with each token as the root, how many of ``depth`` tokens drafted at once match the text, as a chain; 0 for
    the last ones, which no row is read for. guess: the likeliest token [S, R] after each row. places: how many rows the text
    has."""
    padded = F.pad(tokens, (0, depth), value=-1)
    found = torch.zeros_like(tokens)
    for some in torch.arange(places, device=tokens.device).split(AT_ONCE):
        best = guess(behind(places, some, depth))
        masks = best[:, places:].unflatten(1, (len(some), depth - 1))
        drafted = torch.cat([best[:, some, None], masks], -1)
        steps = torch.arange(1, depth + 1, device=tokens.device)
        right = drafted == padded[:, some[:, None] + steps]
        found[:, some] = run_lengths(right.flatten(0, 1)).unflatten(0, (len(tokens), -1))
    return found
