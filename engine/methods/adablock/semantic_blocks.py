"""A block that ends where a step of the text ends: AdaBlock.

Lu et al., "AdaBlock-dLLM: Semantic-Aware Diffusion LLM Inference via Adaptive Block Size" (2025). The first pass looks
for the delimiter (the end of a line or sentence) of which the denoiser is surest. If the denoiser is sure enough, the
block ends with this delimiter; else the block has its usual size. Within the block, confident places are filled as in
Dimple.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from engine.methods.shared.unmasking_order import Canvas, Confident, open_confidence


@dataclass
class SemanticBlocks(Confident):
    """threshold: of a place, see Confident. usual: the block's size if no delimiter is sure. delimiter_threshold:
    the confidence of a delimiter that ends the block. is_delimiter: whether a token is a delimiter."""

    usual: int
    delimiter_threshold: float
    is_delimiter: Callable[[int], bool]
    found: tuple[int, float] | None = None
    """The place of the delimiter that ended the block, and its confidence."""

    def end(self, probabilities: Tensor, canvas: Canvas) -> int:
        if canvas.turns:
            return canvas.length
        sure, tokens = open_confidence(probabilities, canvas), probabilities.argmax(-1).tolist()
        delimiters = [place for place in sure if self.is_delimiter(tokens[place])]
        best = max(delimiters, key=lambda place: sure[place], default=None)
        if best is None or sure[best] < self.delimiter_threshold:
            return min(self.usual, canvas.length)
        self.found = (best, sure[best])
        return best + 1
