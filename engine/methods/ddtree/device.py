"""The best-first tree of a block, grown on the device: node for node the tree of ``ddtree``."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.core.sampling import display_distribution
from engine.core.tree import ROOT
from engine.fast.gpu.choice import Choice
from engine.fast.gpu.device_tree import DeviceTree
from engine.fast.gpu.shape import NO_NODE, DeviceShape
from engine.methods.ddtree.drafter import DDTreeDrafter
from engine.methods.shared.static_block_context import choose


@dataclass(frozen=True)
class BestFirst(Choice):
    """The ``budget`` likeliest prefixes under independent rows: int32 [budget] and their shape.

    ``drawn`` is 1 for a row that may be used and 0 for the others. Where fewer than ``budget`` paths have
    any probability, the last entries are not nodes.

    A prefix can be among the ``budget`` likeliest only if its parent, the prefix without the last
    token, is among the ``budget`` likeliest of the parent's level. The i-th of these parents, extended
    by its r-th likeliest token, can be among them only if (i + 1)(r + 1) is at most the budget. So a
    level has about budget log budget candidates. Among equals, those of the earlier level come first,
    then those of the earlier parent, then those of the earlier rank.
    """

    budget: int

    def __call__(self, logits, drawn):
        budget, device = self.budget, logits.device
        ranks = min(budget, logits.shape[-1])
        values, tokens = display_distribution(logits, self.sampling).topk(ranks, dim=-1)
        values = values.double() * drawn[:, None]
        above, rank = _candidates(budget, ranks, device)
        chance = torch.zeros(budget, dtype=torch.float64, device=device)
        chance[:1].fill_(1.0)  # of the root, which is level 0's only parent
        levels = []
        for row, (its, names) in enumerate(zip(values, tokens, strict=True)):
            ordered = (chance[above] * its[rank]).sort(descending=True, stable=True)
            chance, taken = ordered.values[:budget], ordered.indices[:budget]
            levels.append((chance, above[taken] + (row - 1) * budget, names[rank[taken]]))
        chances, parents, names = (torch.cat(part) for part in zip(*levels, strict=True))
        best = chances.sort(descending=True, stable=True)
        chosen, there = best.indices[:budget], best.values[:budget] > 0
        number = torch.zeros(len(chances), dtype=torch.int32, device=device)
        number.scatter_(0, chosen, torch.arange(budget, dtype=torch.int32, device=device))
        level = chosen // budget
        parent = torch.where(level == 0, ROOT, number[parents[chosen].clamp(min=0)])
        parent = torch.where(there, parent, NO_NODE).to(torch.int32)
        shape = DeviceShape.of(parent, (level + 1).to(torch.int32), self.length)
        return torch.where(there, names[chosen], 0).to(torch.int32), shape


def _candidates(budget: int, ranks: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Parents (as places on their level) and ranks of a level's candidates, int64, sorted by parent,
    then by rank. Rectangles, each twice as wide as the one before, cover the candidates."""
    parts, begin = [], 0
    while begin < ranks:
        end = min(2 * begin + 1, ranks)
        rows = torch.arange(budget // (begin + 1), device=device)
        parts.append((rows[:, None] * ranks + torch.arange(begin, end, device=device)).flatten())
        begin = end
    both = torch.cat(parts).sort().values
    return both // ranks, both % ranks


class DeviceDDTree(DDTreeDrafter):
    """DDTreeDrafter whose tree is also grown in the captured graph; the host learns its shape afterwards."""

    def propose(self, context, max_depth):
        most, length = self._length(math.inf), self._length(max_depth)
        choice = BestFirst(most, replace(self.sampling, seed=0), self.settings["budget"])
        usable = (torch.arange(most) < length).double()
        ids, shape = choose(self._reader, context[-1], choice, usable)
        return DeviceTree.unseen("one_hot", "block", ids, replace(shape, deepest=length))
