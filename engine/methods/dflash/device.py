"""The block-diffusion drafter for unrecorded texts on a GPU: its marginals stay on the device."""

import math
from dataclasses import replace

from engine.fast.gpu.choice import OneEach
from engine.fast.gpu.device_tree import DeviceTree
from engine.methods.dflash.drafter import DFlashDrafter
from engine.methods.shared.static_block_context import choose


class DeviceDFlash(DFlashDrafter):
    """Drafts as DFlashDrafter does, but one captured graph runs over the block, fills it and picks the tokens.

    Tokens and q stay on the device until they are judged. For a sampled block the random numbers are drawn in advance.
    """

    def propose(self, context, max_depth):
        length = self._length(max_depth)
        drawn = None if self.sampling.greedy else self.chance.uniforms(length)
        choice = OneEach(self._length(math.inf), replace(self.sampling, seed=0))
        ids, q = choose(self._reader, context[-1], choice, drawn)
        return DeviceTree.chain_of(ids[:length], q, "block")
