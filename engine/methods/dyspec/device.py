"""DySpec for unrecorded texts: q stays on the device, and only the few numbers needed to grow the
tree cross to the host.

Which slot is filled next depends on earlier draws, so the host decides; the device ranks and draws.
Where the device rounds a sum differently from the host, two slots of equal worth may change places.
The tree is then another one, but just as exact, because a slot is chosen before its token is drawn.
"""

import torch
from torch import Tensor

from engine.core.chance import DraftChance
from engine.core.transfer import to_device
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.methods.shared.grown_tree import Place


class DeviceDySpec(DySpecDrafter):
    """DySpecDrafter with q on the device. In greedy decoding the likeliest tokens of all rows of a
    draft pass cross to the host at once; in sampled decoding one token crosses per draw."""

    q_stays = True

    def places(self, q: Tensor) -> list[Place]:
        if not self.sampling.greedy:
            return [DrawnPlace(row, self.chance) for row in q]
        weights = self.ranked(q)
        count = min(self.settings["budget"], q.shape[-1])
        values, tokens = weights.topk(count, dim=-1)
        mass = weights.sum(-1, keepdim=True)
        packed = torch.cat([values.double(), tokens.double(), mass.double()], -1).tolist()
        return [RankedPlace(row[:count], row[count:-1], row[-1]) for row in packed]


class RankedPlace:
    """See ``Place``. weights, tokens: of its children, best first. mass: the sum of all weights."""

    q = None

    def __init__(self, weights: list[float], tokens: list[float], mass: float) -> None:
        self._children = zip(weights, tokens, strict=True)
        self._mass = mass

    def take(self) -> tuple[int, float, None] | None:
        weight, token = next(self._children, (0.0, -1))
        if weight <= 0 or self._mass <= 0:
            return None
        share = min(1.0, weight / self._mass)
        self._mass -= weight
        return int(token), share, None


class DrawnPlace:
    """See ``Place``. Its children are drawn without replacement, each with a uniform from the host.

    left: q without the children drawn so far, on the device.
    """

    def __init__(self, q: Tensor, chance: DraftChance) -> None:
        self.q = q
        self._left, self._chance = q.clone(), chance
        self._empty = False

    def take(self) -> tuple[int, float, float] | None:
        if self._empty:
            return None
        left, drawn = self._left, to_device(self._chance.uniforms(1), self._left.device)
        mass, token = left.sum(), self._chance.pick(left[None], drawn)
        weight = left[token]
        left.index_fill_(0, token, 0.0)
        numbers = torch.stack(
            [token[0].double(), weight[0].double(), mass.double(), left.sum().double()]
        )
        number, its, before, after = numbers.tolist()
        self._empty = after <= 0
        return int(number), its / before, its
