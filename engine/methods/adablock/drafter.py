"""Block diffusion in which a block ends at the end of a line or sentence, if the first pass of the denoiser is sure of
that end.

AdaBlock (Lu et al., "AdaBlock-dLLM: Semantic-Aware Diffusion LLM Inference via Adaptive Block Size", 2025) serves here
as the unmasking policy of a block-diffusion drafter; the draft of a step is one block. After the first pass, the policy
looks for the delimiter (the end of a line or sentence) of which the denoiser is surest. If the denoiser is sure enough,
the block ends with this delimiter; otherwise it has the size set by the option ``block``. Within the block, the
positions of which the denoiser is confident are filled in each pass, as in Dimple.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from engine.core.exhibits import Words
from engine.core.options import choice, number, whole
from engine.methods.shared.unmasking import (
    LENGTH,
    PASSES,
    Canvas,
    Confident,
    UnmaskingDrafter,
    open_confidence,
    threshold,
)

MARKS = {"lines": "\n", "sentences": "\n.!?", "clauses": "\n.!?,;:"}


@dataclass
class SemanticBlocks(Confident):
    """The unmasking policy: it ends the block at a sure delimiter, and fills masked positions as ``Confident`` does.
    threshold: the least confidence with which a position is filled. usual: the block's size if no delimiter is sure
    enough. delimiter_threshold: the least confidence with which a delimiter ends the block. is_delimiter: whether a
    token is a delimiter."""

    usual: int
    delimiter_threshold: float
    is_delimiter: Callable[[int], bool]
    found: tuple[int, float] | None = None
    """The index in the block of the delimiter that ended the block, and the delimiter's confidence; None if no
    delimiter ended it."""

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


class AdaptiveBlockDrafter(UnmaskingDrafter):
    key = "adablock"
    title = "Block diffusion by sentences, AdaBlock"
    summary = "A diffusion drafter fills a block that ends where a line or a sentence ends."
    options = (
        LENGTH,
        whole("block", 5, 1, 31, "Usual block").meaning("Size of a block without a sure end."),
        choice("delimiters", "sentences", tuple(MARKS), "Ends of blocks").meaning(
            "What ends a block: the end of a line, of a sentence too, or of a clause too."
        ),
        number("delimiter_threshold", 0.3, 0.0, 1.0, "Confidence of an end").meaning(
            "Confidence of an end that ends the block."
        ),
        threshold(),
        PASSES,
    )

    def policy(self):
        settings = self.settings
        self._blocks = SemanticBlocks(
            settings["threshold"],
            settings["block"],
            settings["delimiter_threshold"],
            self._is_delimiter,
        )
        return self._blocks

    def propose(self, context, max_depth):
        tree, ending = super().propose(context, max_depth), self._blocks.found
        if ending is None:
            sentence = f"No end of a block is sure enough, so the block is not cut short: {len(tree)} tokens."
        else:
            sentence = (
                f"The block ends with place {ending[0] + 1}, an end of confidence {ending[1]:.2f}."
            )
        tree.exhibits.append(Words("Size of the block", [sentence]))
        return tree

    def _is_delimiter(self, token: int) -> bool:
        """Whether the token's text ends a line, sentence or clause, as the options ask. A model without a tokenizer has
        no delimiters."""
        tokenizer = self.target.tokenizer
        text = "" if tokenizer is None else tokenizer.decode([token]).strip(" ")
        return "\n" in text or text[-1:] in tuple(MARKS[self.settings["delimiters"]])
