"""The shape of a tree as the target's pass needs it, worked out on the device that grew the tree."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.tree import ROOT
from engine.fast.kernels.bits import pack

NO_NODE = ROOT - 1


@dataclass(frozen=True)
class DeviceShape:
    """A tree of up to N nodes whose parents the host does not know.

    parents: int32 [N], ROOT or an earlier node; entries at the end that are not nodes hold NO_NODE.
    own: int32 [N + 1], depths, the root's first. bits: int32 [N + 1, W], which rows each row sees, as
    in ``AncestorBits``. draws: int32 [N] and first: int32 [N + 2] as in ``FlatTree``. deepest: an
    upper bound of the depths.
    """

    parents: Tensor
    own: Tensor
    bits: Tensor
    draws: Tensor
    first: Tensor
    deepest: int

    @classmethod
    def of(cls, parents: Tensor, own: Tensor, deepest: int) -> "DeviceShape":
        """No operation waits for the host. own: the depths of the nodes, int32 [N]."""
        size, device = len(parents), parents.device
        above = torch.nn.functional.pad(parents.long().clamp(min=ROOT) + 1, (1, 0))  # of rows
        seen, step = torch.eye(size + 1, dtype=torch.bool, device=device), 1
        while step <= deepest:  # each turn reaches twice as far up
            seen, above, step = seen | seen[above], above[above], 2 * step
        place = torch.where(parents == NO_NODE, size + 1, parents + 1)
        ordered = place.sort(stable=True)
        places = torch.arange(size + 2, dtype=place.dtype, device=device)
        return cls(
            parents,
            torch.nn.functional.pad(own, (1, 0)),
            pack(seen),
            ordered.indices.to(torch.int32),
            torch.searchsorted(ordered.values, places).to(torch.int32),
            deepest,
        )

    def clone(self) -> "DeviceShape":
        parts = (self.parents, self.own, self.bits, self.draws, self.first)
        return DeviceShape(*(part.clone() for part in parts), self.deepest)
