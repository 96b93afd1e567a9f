"""A learned filter: Learning to Parallel decode, Learn2PD.

Bao et al., "Learning to Parallel: Accelerating Diffusion Large Language Models via Learnable Parallel Decoding" (2025).
A network of two layers sees the confidences of the whole block and predicts for each place whether its present token is
already the final one. It imitates the oracle that fills exactly the right places. End-of-text prediction belongs to the
canvas (``Canvas.ends``): nothing after an end of text is denoised.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.methods.learn2pd.part import UnmaskingFilter, reading
from engine.methods.shared.unmasking_order import Canvas, Unmasking, open_confidence, surest


@dataclass
class LearnedFilter(Unmasking):
    """threshold: for the chance that a place is right."""

    part: UnmaskingFilter
    threshold: float

    def choose(self, probabilities: Tensor, canvas: Canvas) -> dict[int, str]:
        filled = torch.tensor([place in canvas.filled for place in range(canvas.length)])
        values = probabilities.max(-1).values.cpu()
        chance = self.part.chance(reading(values, filled)).tolist()
        right = [place for place in canvas.open if chance[place] >= self.threshold]
        chosen = {place: f"filter {chance[place]:.2f}" for place in right}
        return chosen or surest(open_confidence(probabilities, canvas))
