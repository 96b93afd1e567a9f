"""The block-diffusion drafters where nobody watches: their marginals do not leave the device."""

import math
from dataclasses import replace

from engine.drafters.ddtree import DDTreeDrafter, best_first
from engine.drafters.dflash import DFlashDrafter
from engine.sampling import uniforms
from engine.static.choice import Likeliest, OneEach
from engine.static.device_chain import chain_of


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
    """DDTreeDrafter that lets the likeliest few tokens of each position cross, and no marginals.

    The tree's shape follows from these, and the host must know it to lay out the target's pass.
    """

    def propose(self, context, max_depth):
        budget = self.settings["budget"]
        count = min(budget, self.target.vocab_size)
        choice = Likeliest(self._length(math.inf), replace(self.sampling, seed=0), count)
        (found,) = self._reader.choose(context[-1], choice, None)
        length = self._length(max_depth)
        values, tokens = found[:, :length].tolist()
        return best_first(values, tokens, budget, [None] * length)
