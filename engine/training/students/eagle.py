"""An EAGLE cell in training: EAGLE-1's and 2's lesson on features and words, or EAGLE-3's training-time test.

With layout=eagle the cell reads the last state, with noise on it, and learns the next one and the target's law behind
it; with layout=eagle3 or speculators it reads three lower states, has a head of its own (vocabulary=N: over the N
tokens that occur most often) and learns the law alone. steps=N unrolls N steps of a draft, the cell's own states fed
back: EAGLE-3's training-time test, which a cell of layout=eagle may take, too, instead of the lesson on features.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from engine.errors import UserError
from engine.options import Option
from engine.parts.eagle_cell import EagleCell
from engine.parts.eagle_layout import write_cell

from ..eagle import (
    accepted,
    eagle_config,
    feature_loss,
    most_frequent,
    new_cell,
    noise_like,
    unrolled_loss,
)
from ..student import Lesson, Student

CHAIN = 6  # tokens of the drafts whose length is measured


class EagleStudent(Student):
    key = "eagle"
    summary = "a cell that predicts the target's next features"
    options = (
        Option(
            "layout",
            "choice",
            "eagle",
            "Of the files, and what the cell reads: the last state (eagle) or three lower ones.",
            choices=("eagle", "eagle3", "speculators"),
        ),
        Option(
            "steps",
            "int",
            0,
            "Steps of the training-time test (0: the lesson on features, or one step of a cell that reads "
            "three states).",
            0,
            8,
        ),
        Option(
            "vocabulary",
            "int",
            0,
            "Tokens that a cell with a head of its own can draft, the most frequent ones (0: all).",
            0,
            1 << 20,
        ),
    )

    def __init__(self, target, settings) -> None:
        super().__init__(target, settings)
        size = 0 if settings["layout"] == "eagle" else settings["vocabulary"]
        self._size = min(size, self.config.vocab_size) % self.config.vocab_size
        self._shape = eagle_config(self.config, settings["layout"], self._size)
        self._vocabulary: Tensor | None = None
        self._steps = settings["steps"] or (1 if self._shape.fused else 0)
        self._embedding = target.get_input_embeddings()
        self._head = target.get_output_embeddings()

    @property
    def logit_sets(self) -> int:
        return max(1, self._steps)

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return self._shape.layers_of(self.config.num_hidden_layers)

    def prepare(self, tokens: Tensor) -> None:
        if self._size:
            self._vocabulary = most_frequent(tokens, self._size, self.config.vocab_size)

    def start(self) -> EagleCell:
        if self._size and self._vocabulary is None:
            raise UserError("A draft vocabulary is chosen by the text that is learned from.")
        return new_cell(self._shape, self.target, self._vocabulary)

    def loss(self, part: EagleCell, lesson: Lesson) -> Tensor:
        given = (lesson.features, lesson.tokens, lesson.logits, lesson.counted)
        if self._steps:
            return unrolled_loss(part, *given, self._embedding, self._head, self._steps)
        noise = noise_like(lesson.features, lesson.index)
        return feature_loss(part, *given, self._embedding, self._head, noise)

    def accepted(self, part: EagleCell, lesson: Lesson) -> Tensor:
        """With a chain of ``CHAIN`` tokens; the drafter's tree holds more."""
        shared = (self._embedding, self._head)
        return accepted(part, lesson.features, lesson.tokens, *shared, length=CHAIN)

    @torch.no_grad()
    def save(self, part: EagleCell, folder: Path, about: Mapping) -> None:
        write_cell(part, folder, about)


STUDENT = EagleStudent
