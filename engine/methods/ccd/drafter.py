"""A word is filled in once several passes, each with other words around it, have named it.

Coherent Contextual Decoding (Chen et al., "Beyond Confidence: Adaptive and Coherent Decoding for Diffusion Language
Models", 2025), in its adaptive form, serves here as the unmasking policy of a block-diffusion drafter.
"""

from engine.core.options import Option
from engine.methods.ccd.coherent import Coherent
from engine.methods.shared.unmasking import LENGTH, UnmaskingDrafter


class CoherentDrafter(UnmaskingDrafter):
    key = "ccd"
    title = "Block diffusion by coherence, CCD"
    summary = "A diffusion drafter fills the words on which several of its passes agree."
    options = (
        LENGTH,
        Option("depth", "int", 2, "Passes that must agree.", 2, 8, label="Passes that agree"),
        Option(
            "candidates",
            "int",
            4,
            "Surest places of a pass that are remembered.",
            1,
            31,
            label="Remembered places",
        ),
        Option("passes", "int", 4, "Most denoising passes in a step.", 1, 16, label="Passes"),
    )
    trial = {"length": 2, "passes": 3}

    def policy(self):
        return Coherent(self.settings["depth"], self.settings["candidates"])
