"""Confident tokens are anchors, and places near an anchor are filled at a lower confidence.

LocalLeap (Kong et al., "Accelerating Diffusion LLM Inference via Local Determinism Propagation", 2025) as the unmasking
policy of a block-diffusion drafter.
"""

from engine.core.options import Option
from engine.methods.localleap.local_leap import LocalLeap
from engine.methods.shared.unmasking import LENGTH, PASSES, UnmaskingDrafter, threshold


class LocalLeapDrafter(UnmaskingDrafter):
    key = "localleap"
    title = "Block diffusion with anchors, LocalLeap"
    summary = "A diffusion drafter fills the words it is sure of, and less sure ones near them."
    options = (
        LENGTH,
        threshold(),
        Option(
            "relaxed",
            "float",
            0.75,
            "Confidence that is enough near an anchor.",
            0.0,
            1.0,
            label="Confidence near an anchor",
        ),
        Option("radius", "int", 4, "Places to each side of an anchor.", 0, 31, label="Radius"),
        PASSES,
    )

    def policy(self):
        settings = self.settings
        return LocalLeap(settings["threshold"], settings["relaxed"], settings["radius"])
