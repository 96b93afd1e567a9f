"""A small trained filter predicts which tokens of a block are already right; nothing is filled after an end of text.

Bao et al., "Learning to Parallel: Accelerating Diffusion Large Language Models via Learnable Parallel Decoding" (2025):
Learn2PD with end-of-text prediction, as the unmasking policy of a block-diffusion drafter. A network of two layers
reads the confidences of the whole block and predicts for each place whether its present token is already the final one.
It imitates an oracle that fills exactly the right places. End-of-text prediction is done by the canvas
(``Canvas.ends``): nothing after an end of text is denoised.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.options import number, switch
from engine.methods.learn2pd.part import UnmaskingFilter, check_denoiser, reading
from engine.methods.shared.unmasking import (
    LENGTH,
    PASSES,
    Canvas,
    Unmasking,
    UnmaskingDrafter,
    open_confidence,
    surest,
)


@dataclass
class LearnedFilter(Unmasking):
    """The unmasking policy: at each pass, fill the places whose token the filter finds likely to be right. threshold: a
    place is filled if the predicted chance that its token is right is at least this."""

    part: UnmaskingFilter
    threshold: float

    def choose(self, probabilities: Tensor, canvas: Canvas) -> dict[int, str]:
        filled = torch.tensor([place in canvas.filled for place in range(canvas.length)])
        values = probabilities.max(-1).values.cpu()
        chance = self.part.chance(reading(values, filled)).tolist()
        right = [place for place in canvas.open if chance[place] >= self.threshold]
        chosen = {place: f"filter {chance[place]:.2f}" for place in right}
        return chosen or surest(open_confidence(probabilities, canvas))


class LearnedParallelDrafter(UnmaskingDrafter):
    key = "learn2pd"
    title = "Block diffusion with a learned filter, Learn2PD"
    summary = "A diffusion drafter fills the words that a small trained filter finds right."
    needs = {"diffusion": "denoiser", "learn2pd": "unmasking_filter"}
    options = (
        LENGTH,
        number("threshold", 0.9, 0.0, 1.0, "Chance").meaning(
            "A place is filled once the filter gives its token this chance to be right."
        ),
        switch("end_of_text", True, "End-of-text prediction").meaning(
            "Fill nothing behind an end of text."
        ),
        PASSES,
    )

    def __init__(self, settings, drafter, target, part) -> None:
        super().__init__(settings, drafter, target)
        self.part = part
        self.ends = frozenset(target.end_tokens) if settings["end_of_text"] else frozenset()

    @classmethod
    def build(cls, settings, models):
        denoiser, part = models.part("diffusion"), models.part("learn2pd")
        places = denoiser.config.block_size - 1
        check_denoiser(part, places, models.folders.get("diffusion"))
        return cls(settings, denoiser, models.target, part)

    def policy(self):
        return LearnedFilter(self.part, self.settings["threshold"])
