"""Confident tokens are anchors, and places near an anchor are filled at a lower confidence.

LocalLeap (Kong et al., "Accelerating Diffusion LLM Inference via Local Determinism Propagation", 2025) serves as the
unmasking policy of a block-diffusion drafter. A position of the block at which the denoiser is very sure is an
*anchor*. Near an anchor, tokens of lower confidence are reliable, too. This effect falls with the distance, so the
lower threshold applies only within a radius.
"""

from dataclasses import dataclass

from torch import Tensor

from engine.core.options import number, whole
from engine.methods.shared.unmasking import (
    LENGTH,
    PASSES,
    Canvas,
    Unmasking,
    UnmaskingDrafter,
    open_confidence,
    surest,
    threshold,
)


@dataclass
class LocalLeap(Unmasking):
    """The policy. threshold: the least confidence of an anchor. relaxed: the least confidence of a place that is at
    most ``radius`` places away from an anchor."""

    threshold: float
    relaxed: float
    radius: int

    def choose(self, probabilities: Tensor, canvas: Canvas) -> dict[int, str]:
        sure = open_confidence(probabilities, canvas)
        anchors = [place for place in sure if sure[place] >= self.threshold]
        chosen = dict.fromkeys(anchors, "anchor")
        for place in sure:
            anchor = min(anchors, key=lambda anchor: abs(anchor - place), default=None)
            near = anchor is not None and abs(anchor - place) <= self.radius
            if near and sure[place] >= self.relaxed:
                chosen.setdefault(place, f"near the anchor {anchor + 1}")
        return chosen or surest(sure)


class LocalLeapDrafter(UnmaskingDrafter):
    key = "localleap"
    title = "Block diffusion with anchors, LocalLeap"
    summary = "A diffusion drafter fills the words it is sure of, and less sure ones near them."
    options = (
        LENGTH,
        threshold(),
        number("relaxed", 0.75, 0.0, 1.0, "Confidence near an anchor").meaning(
            "Confidence that is enough near an anchor."
        ),
        whole("radius", 4, 0, 31, "Radius").meaning("Places to each side of an anchor."),
        PASSES,
    )

    def policy(self):
        settings = self.settings
        return LocalLeap(settings["threshold"], settings["relaxed"], settings["radius"])
