"""A block is filled in several denoising passes: confident words first, then the others, which can see the words filled
before.

Dimple's confident decoding (Yu et al., "Dimple: Discrete Diffusion Multimodal Large Language Model with Parallel
Decoding", 2025) serves here as the unmasking policy of a block-diffusion drafter.
"""

from engine.methods.shared.unmasking import LENGTH, PASSES, Confident, UnmaskingDrafter, threshold


class DimpleDrafter(UnmaskingDrafter):
    key = "dimple"
    title = "Block diffusion in passes, Dimple"
    summary = "A diffusion drafter fills the words it is sure of, and looks again at the others."
    options = (LENGTH, threshold(), PASSES)

    def policy(self):
        return Confident(self.settings["threshold"])
