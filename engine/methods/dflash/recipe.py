"""Trains the drafter of DFlash for any target; many random blocks of a window share one pass of the target.

The drafter begins with the target's last layers. With vocabulary=N its head has only the N tokens that the target
writes most often, with the target's rows. The i-th position of a block learns the target's distribution over these
tokens at that position of the text.

For SmolLM2-135M, a drafter of two layers with a head of 8,192 tokens has 12 M weights, which are read from memory for
each block. The whole head alone would have 28 M weights.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.options import Option, whole
from engine.methods.shared.dflash_model import DFlashModel
from engine.methods.shared.trimmed_head import rows_of
from engine.training.cell_training import most_frequent
from engine.training.counted_acceptance import run_lengths
from engine.training.diffusion import (
    block_embeddings,
    diffusion_config,
    diffusion_loss,
    mask_token,
    random_anchors,
    start_from,
)
from engine.training.student import Lesson, Student

BLOCKED = 0.75
"""How many positions all random blocks of a window have together, as a multiple of the window's tokens."""
AT_ONCE = 64  # blocks that are measured in one pass


class DFlashStudent(Student):
    key = "dflash"
    summary = "a drafter that fills a block at once"
    of_family = False  # the recipe `align` trains the drafter of the family
    options = (
        Option("layers", "int", 2, "Layers of the drafter.", 1, 64),
        Option("block", "int", 8, "Rows of a block, the root among them.", 2, 32),
        whole("vocabulary", 0, 0, 1 << 20).meaning(
            "Tokens that the head has, the most frequent ones (0: the target's whole head)."
        ),
    )

    def __init__(self, target, settings, mask_token: int) -> None:
        super().__init__(target, settings)
        self._embedding = target.get_input_embeddings()
        self._every = len(target.get_output_embeddings().weight)
        self._shape = diffusion_config(
            self.config,
            mask_token,
            settings["layers"],
            settings["block"],
            vocabulary=self._every,
            known=min(settings["vocabulary"], self._every) % self._every,
        )
        self._tokens: Tensor | None = None
        self._rows: Tensor | None = None

    @classmethod
    def of(cls, teacher, settings):
        return cls(teacher.module, settings, mask_token(teacher))

    @property
    def taught_tokens(self) -> Tensor | None:
        return self._tokens

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return tuple(layer + 1 for layer in self._shape.target_layer_ids)

    def prepare(self, tokens: Tensor) -> None:
        size = self._shape.draft_vocab_size or self._every
        self._tokens = most_frequent(tokens, size, self._every).to(self.target.device)
        self._rows = rows_of(self.target, self._tokens)

    def start(self) -> DFlashModel:
        model = DFlashModel(self._shape)
        start_from(model, self.target)
        if self._shape.draft_vocab_size:
            model.t2d[self._tokens.cpu()] = True
        return model

    def loss(self, part: DFlashModel, lesson: Lesson) -> Tensor:
        size = self._shape.block_size
        rows, length = lesson.tokens.shape
        blocks = max(1, round(BLOCKED * length / size))
        anchors = random_anchors(rows, length, blocks, size, lesson.index).to(lesson.tokens.device)
        shared = (lesson.features, lesson.logits, lesson.tokens, lesson.counted, anchors)
        return diffusion_loss(part, self._embedding, self._head, *shared, gamma=size / 2)

    def accepted(self, part: DFlashModel, lesson: Lesson) -> Tensor:
        size, (rows, length) = self._shape.block_size, lesson.tokens.shape
        places = torch.arange(1, length, device=lesson.tokens.device)
        padded = F.pad(lesson.tokens, (0, size), value=-1).unfold(1, size, 1)[:, :, 1:]
        lengths = torch.zeros_like(lesson.tokens)
        for some_places in places.split(AT_ONCE):
            anchors = some_places.expand(rows, -1)
            roots = lesson.tokens.gather(1, anchors)
            mask = self._shape.mask_token_id
            blocks = block_embeddings(self._embedding, roots, size, mask)
            hidden = part(lesson.features, blocks, anchors)[:, :, 1:]
            right = self._tokens[self._head(hidden).argmax(-1)] == padded[:, some_places]
            lengths[:, some_places] = run_lengths(right.flatten(0, 1)).unflatten(0, (rows, -1))
        return lengths

    def _head(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self._rows)


STUDENT = DFlashStudent
