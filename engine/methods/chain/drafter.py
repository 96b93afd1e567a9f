"""A chain of tokens by a draft model: speculative decoding as it was first published (``engine.methods.shared.draft_chain``)."""

from engine.core.arm import Arm
from engine.methods.shared.draft_chain import DraftChain


class ChainDrafter(DraftChain):
    key = "chain"
    title = "Chain"
    summary = "A small draft model writes a few tokens ahead, one after another."
    arm = Arm((2, 3, 4, 8, 16), 0.65, token=0.15, catch_up=0.006)

    def device_twin(self):
        from engine.methods.chain.device import device_twin

        return device_twin(self)
