"""A block-diffusion drafter on the target's hidden states: one denoising step, one chain.

DFlash (Chen et al., 2026): the drafter reads features of the committed text and fills a whole block of masks in a
single pass. Given the text, the positions are independent, so the q at each position is the true law of its token,
whatever was drafted before it.
"""

from engine.core.arm import Arm
from engine.core.options import whole
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.methods.shared.block_walk import blind


class DFlashDrafter(DiffusionDrafter):
    key = "dflash"
    shape = "chain"
    title = "Block diffusion, DFlash"
    summary = "A diffusion drafter fills a whole block in one step, as one chain."
    arm = Arm((3, 4, 7), 0.55, start=0.2, catch_up=0.003)
    draw_kinds = ("iid",)
    options = (
        whole("length", 0, 0, 31).meaning(
            "Tokens drafted in each step (0: the fastest size for this machine, measured)."
        ),
    )
    size_option, usual_size = "length", 7
    trial = {"length": 2}

    def propose(self, context, max_depth):
        return blind(self._marginals(context, max_depth).cpu(), self.sampling, self.chance)

    def device_twin(self):
        from engine.methods.dflash.device import DeviceDFlash

        return DeviceDFlash(self.settings, self.diffusion, self.target)
