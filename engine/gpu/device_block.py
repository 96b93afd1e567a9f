"""The block-diffusion drafters where nobody watches: their marginals do not leave the device."""

import math
from dataclasses import replace

import torch

from engine.drafters.ddtree import DDTreeDrafter
from engine.drafters.dflash import DFlashDrafter
from engine.gpu.best_first import BestFirst
from engine.gpu.choice import OneEach
from engine.gpu.device_chain import chain_of
from engine.sampling import uniforms
from engine.tree import DraftTree


class DeviceDFlash(DFlashDrafter):
    """DFlashDrafter whose block is read, filled and picked from in one captured graph.

    Tokens and q stay on the device until they are judged; a sampled block takes its uniforms along.
    """

    def propose(self, context, max_depth):
        length = self._length(max_depth)
        drawn = None if self.sampling.greedy else uniforms(self.generator, length)
        choice = OneEach(self._length(math.inf), replace(self.sampling, seed=0))
        ids, q = self._reader.choose(context[-1], choice, drawn)
        return chain_of(ids[:length], q, "block")


class DeviceDDTree(DDTreeDrafter):
    """DDTreeDrafter whose tree is grown in that graph, too: the host learns its shape afterwards."""

    def propose(self, context, max_depth):
        most, length = self._length(math.inf), self._length(max_depth)
        choice = BestFirst(most, replace(self.sampling, seed=0), self.settings["budget"])
        usable = (torch.arange(most) < length).double()
        ids, shape = self._reader.choose(context[-1], choice, usable)
        return DraftTree.unseen("one_hot", "block", ids, replace(shape, deepest=length))
