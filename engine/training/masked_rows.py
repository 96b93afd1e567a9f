"""Trains drafters that predict several tokens at once from mask tokens after a text. Many such continuations of each
window share one pass.

A row is one token position in a pass. A window has a row for each token of its text. After each position of the text,
there may also be a run of mask rows, with depths 1, 2, ... The mask at depth d of a run after position i stands at
position i + d, and learns the target's law for the token at i + d + 1, given the true text before it. Averaged over
many texts, this is the law given only the text up to position i, and a mask row can learn nothing more. It attends to
the text up to position i and to the masks before it in its run.

Conditional drop (PARD, An et al., 2025; P-EAGLE, Hui et al., 2026): only a share of the positions have a mask at depth
1, only a share of these also one at depth 2, and so on. So a window does not have too many rows, and the first depths
have the most weight.

Letters in shapes: S windows, T tokens of each, R rows of a window, A positions with a run of masks, V vocabulary.
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
"""SHARE: of the runs that have a mask at depth d, the share that also have one at depth d + 1. LEAST: the share of all
positions that have a mask at a depth never falls below this. Both values come from the library speculators."""
AT_ONCE = 64  # how many runs are measured in one pass


@dataclass(frozen=True)
class MaskedRows:
    """The rows of a window. anchors: int64 [R], for a mask the position after which its run stands, and for a row of
    the text its own position. depths: int64 [R], the depth of a mask in its run, from 1; 0 for a row of the text."""

    anchors: Tensor
    depths: Tensor

    @property
    def places(self) -> Tensor:
        """The position of each row in the text, int64 [R]."""
        return self.anchors + self.depths

    @property
    def sees(self) -> Tensor:
        """The attention mask, bool [R, R]: True where the row (first index) attends to the other row (second
        index)."""
        mine, other = self.anchors[:, None], self.anchors[None]
        text = (self.depths == 0)[None] & (other <= mine)
        return text | ((mine == other) & (self.depths[None] <= self.depths[:, None]))

    def filled(self, text: Tensor, mask: Tensor) -> Tensor:
        """The values of all rows, [S, R, ..]: rows of the text take theirs from ``text`` [S, T, ..], and all mask rows
        have the value ``mask`` [..]."""
        values = text[:, self.anchors]
        masked = (self.depths > 0).view(-1, *[1] * (text.dim() - 2))
        return torch.where(masked, mask.to(values.dtype), values)


def dropped(length: int, depth: int, index: int, device) -> MaskedRows:
    """The rows of a window of ``length`` tokens after conditional drop; runs have at most ``depth`` - 1 masks. index:
    the random seed that decides which masks are dropped."""
    order = torch.randperm(length, generator=torch.Generator().manual_seed(index))
    anchors, depths = [torch.arange(length)], [torch.zeros(length, dtype=torch.long)]
    for below in range(1, depth):
        count = int(length * max(SHARE**below, LEAST))
        fits = order[:count][order[:count] + below < length]
        anchors.append(fits)
        depths.append(torch.full_like(fits, below))
    return MaskedRows(torch.cat(anchors).to(device), torch.cat(depths).to(device))


def row_sets(depth: int) -> int:
    """How many rows ``dropped`` makes for each token of a window, rounded up."""
    return math.ceil(1 + sum(max(SHARE**below, LEAST) for below in range(1, depth)))


def behind(length: int, places: Tensor, depth: int) -> MaskedRows:
    """The rows of a window of ``length`` tokens, with a run of ``depth`` - 1 masks after each of these positions
    [A]."""
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
    """The mean of KL(p || q) over all rows whose next token is counted. hidden: the drafter's hidden states [S, R, H].
    head: a function from hidden states to logits. logits: the target's, [S, T, V]; row t is for token t + 1. counted:
    bool [S, T], True for tokens whose prediction enters the loss."""
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
    T]. guess: a function from rows to the likeliest token after each row, [S, R]. places: only the first ``places``
    tokens are taken as roots; the result is 0 for all others."""
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
