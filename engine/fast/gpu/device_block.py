"""The block-diffusion drafters for unrecorded texts: their marginals stay on the device."""

import math
from dataclasses import replace

import torch

from engine.fast.gpu.best_first import BestFirst
from engine.fast.gpu.block_context import choose
from engine.fast.gpu.choice import OneEach
from engine.fast.gpu.device_tree import DeviceTree
from engine.fast.gpu.twins import device_twin
from engine.methods.ddtree.drafter import DDTreeDrafter
from engine.methods.dflash.drafter import DFlashDrafter


class DeviceDFlash(DFlashDrafter):
    """DFlashDrafter whose block is read, filled and picked from in one captured graph.

    Tokens and q stay on the device until they are judged; a sampled block is given its uniforms in advance.
    """

    def propose(self, context, max_depth):
        length = self._length(max_depth)
        drawn = None if self.sampling.greedy else self.chance.uniforms(length)
        choice = OneEach(self._length(math.inf), replace(self.sampling, seed=0))
        ids, q = choose(self._reader, context[-1], choice, drawn)
        return DeviceTree.chain_of(ids[:length], q, "block")


class DeviceDDTree(DDTreeDrafter):
    """DDTreeDrafter whose tree is also grown in the captured graph; the host learns its shape afterwards."""

    def propose(self, context, max_depth):
        most, length = self._length(math.inf), self._length(max_depth)
        choice = BestFirst(most, replace(self.sampling, seed=0), self.settings["budget"])
        usable = (torch.arange(most) < length).double()
        ids, shape = choose(self._reader, context[-1], choice, usable)
        return DeviceTree.unseen("one_hot", "block", ids, replace(shape, deepest=length))


@device_twin.register
def _(drafter: DFlashDrafter) -> DFlashDrafter:
    return DeviceDFlash(drafter.settings, drafter.diffusion, drafter.target)


@device_twin.register
def _(drafter: DDTreeDrafter) -> DDTreeDrafter:
    return DeviceDDTree(drafter.settings, drafter.diffusion, drafter.target)
