"""Trains a draft model that is made of some of the target's own layers.

The draft model has the target's embeddings, copies of ``layers`` of the target's layers, spread from the first to the
last, and the rows of the target's head for the ``vocabulary`` tokens that the target writes most often. The layers and
the final norm then learn the target's distributions over these tokens, on text that the target wrote. Every drafter
with a draft model takes the result (``--draft DIR``).

The default sizes follow from the weights that must be read from memory for a drafted token. SmolLM2-135M has 135 M
weights. One of its layers has 3.5 M weights, and a head of 8,192 tokens has 4.7 M. So two layers and such a head have
12 M weights, less than a tenth of the target's, whatever the number format. A third layer would make every drafted
token 30 % dearer.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from engine.core.options import Option, whole
from engine.methods.shared.layers_draft import LayersDraft
from engine.methods.shared.trimmed_head import rows_of
from engine.training.cell_training import most_frequent
from engine.training.counted_acceptance import chain_lengths
from engine.training.student import Lesson, Student

CHAIN = 6  # tokens of the chains that measure the accepted length


class ChainStudent(Student):
    key = "chain"
    summary = "a draft model of some of the target's own layers"
    options = (
        Option("layers", "int", 2, "Layers of the target that the draft begins with.", 1, 64),
        whole("vocabulary", 8192, 0, 1 << 20).meaning(
            "Tokens that the draft's head has, the most frequent ones (0: all)."
        ),
    )
    of_family = False  # the recipe `draft` trains the draft model of the family
    feature_layers = ()

    def __init__(self, target, settings) -> None:
        super().__init__(target, settings)
        self._embedding = target.get_input_embeddings()
        self._tokens: Tensor | None = None
        self._rows: Tensor | None = None

    @property
    def taught_tokens(self) -> Tensor | None:
        return self._tokens

    def prepare(self, tokens: Tensor) -> None:
        every = len(self.target.get_output_embeddings().weight)
        size = min(self.settings["vocabulary"], every) or every
        self._tokens = most_frequent(tokens, size, every).to(self.target.device)
        self._rows = rows_of(self.target, self._tokens)

    def start(self) -> LayersDraft:
        count, most = self.settings["layers"], self.config.num_hidden_layers
        return LayersDraft.begun(self.target, spread(min(count, most), most), self._tokens)

    def loss(self, part: LayersDraft, lesson: Lesson) -> Tensor:
        """Return the cross-entropy to the target's distributions, at the positions where the target's likeliest token
        is in the draft model's vocabulary."""
        keep = lesson.counted[:, 1:] & part.t2d[lesson.best[:, :-1]]
        guessed = self._logits(part, lesson.tokens[:, :-1])[keep]
        return F.cross_entropy(guessed.float(), lesson.logits[:, :-1][keep].float().softmax(-1))

    def accepted(self, part: LayersDraft, lesson: Lesson) -> Tensor:
        best = self._tokens[self._logits(part, lesson.tokens[:, :-1]).argmax(-1)]
        return chain_lengths(best == lesson.tokens[:, 1:], CHAIN)

    def _logits(self, part: LayersDraft, tokens: Tensor) -> Tensor:
        """Map tokens [S, T] to logits [S, T, K] over the K tokens of the draft model's head."""
        return F.linear(part.states(self._embedding(tokens)), self._rows)


def spread(count: int, layers: int) -> list[int]:
    """Return the indices of ``count`` of ``layers`` layers, at even distances from the first to the last. If ``count``
    is 1, return the last layer alone."""
    if count == 1:
        return [layers - 1]
    return [round(place * (layers - 1) / (count - 1)) for place in range(count)]


STUDENT = ChainStudent
