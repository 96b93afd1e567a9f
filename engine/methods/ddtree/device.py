"""The block-diffusion tree for unrecorded texts: it is grown in the captured graph too."""

import math
from dataclasses import replace

import torch

from engine.fast.gpu.device_tree import DeviceTree
from engine.methods.ddtree.best_first import BestFirst
from engine.methods.ddtree.drafter import DDTreeDrafter
from engine.methods.shared.static_block_context import choose


class DeviceDDTree(DDTreeDrafter):
    """DDTreeDrafter whose tree is also grown in the captured graph; the host learns its shape afterwards."""

    def propose(self, context, max_depth):
        most, length = self._length(math.inf), self._length(max_depth)
        choice = BestFirst(most, replace(self.sampling, seed=0), self.settings["budget"])
        usable = (torch.arange(most) < length).double()
        ids, shape = choose(self._reader, context[-1], choice, usable)
        return DeviceTree.unseen("one_hot", "block", ids, replace(shape, deepest=length))
