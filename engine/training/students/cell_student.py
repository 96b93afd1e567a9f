"""The base class of students that train an EAGLE cell, with the loss of EAGLE-1 and 2 or with EAGLE-3's training-time
test.

The training may begin with a new cell, or go on with a trained one. The result may be compared with another cell.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.core.options import whole
from engine.errors import UserError
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_config import FUSED
from engine.methods.shared.eagle_layout import read_cell, write_cell
from engine.parts.digest import check_belongs, digest_of
from engine.training.cell_training import (
    accepted,
    eagle_config,
    feature_loss,
    most_frequent,
    new_cell,
    noise_like,
    unrolled_loss,
)
from engine.training.counted_acceptance import walked
from engine.training.student import Lesson, Student

if TYPE_CHECKING:
    from engine.training.teacher import Teacher

BEFORE, AFTER = "draftscope_before", "draftscope_after"
"""Entries of a part's config.json: BEFORE has the accepted length of the cell with which the part is compared, AFTER
that of the part."""
CONTINUED = 0.002, 4e-4
"""The learning rates (Muon's, Adam's) for a cell that was trained before: a fifth of the rates for a new cell."""
CHAIN = 6  # tokens of the chains by which the accepted length is measured
STEPS = whole("steps", 0, 0, 8).meaning(
    "Steps of the training-time test (0: the lesson on features, or one step of a cell that reads three states)."
)


class CellStudent(Student):
    """A student that trains an EAGLE cell. Its settings must contain ``layout``, ``steps`` and ``vocabulary``. rival:
    the cell with which the part is compared, or None."""

    read = staticmethod(read_cell)
    """A function that loads a part of this kind: (folder, dtype, device) -> the cell."""

    def __init__(self, target, settings, begun: EagleCell | None = None) -> None:
        """begun: a frozen, trained cell. The training goes on from this cell, and its layout and vocabulary replace
        those of the settings. None: the training begins with a new cell."""
        super().__init__(target, settings)
        if begun is None:
            size = settings["vocabulary"] if settings["layout"] in FUSED else 0
            self._size = min(size, self.config.vocab_size) % self.config.vocab_size
            self._shape = eagle_config(self.config, settings["layout"], self._size)
        else:
            self._size, self._shape = 0, begun.config
            self.muon_rate, self.adam_rate = CONTINUED
        self.rival = begun
        self._begun = begun
        self._before: float | None = None
        self._vocabulary: Tensor | None = None
        self._borrows = settings.get("head") == "target"
        self._steps = settings["steps"] or (1 if self._shape.fused else 0)
        self._embedding = target.get_input_embeddings()
        self._head = target.get_output_embeddings()

    @classmethod
    def of(cls, teacher, settings):
        if teacher.start is None:
            return cls(teacher.module, settings)
        return begun_by(cls, teacher, settings, teacher.start)

    @property
    def logit_sets(self) -> int:
        return max(1, self._steps)

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return self._shape.layers_of(self.config.num_hidden_layers)

    @property
    def taught_tokens(self) -> Tensor | None:
        return self._vocabulary if self._steps else None

    def prepare(self, tokens: Tensor) -> None:
        if self._size:
            self._vocabulary = most_frequent(tokens, self._size, self.config.vocab_size)

    def start(self) -> EagleCell:
        if self._begun is not None:
            cell = copy.deepcopy(self._begun).requires_grad_(True)
            if not cell.pieces.own_head and cell.lm_head is not None:
                cell.lm_head.requires_grad_(False)  # the target's rows
            return cell
        if self._size and self._vocabulary is None:
            raise UserError("A draft vocabulary is chosen by the text that is learned from.")
        return new_cell(self._shape, self.target, self._vocabulary, borrows=self._borrows)

    def loss(self, part: EagleCell, lesson: Lesson) -> Tensor:
        inputs = (lesson.features, lesson.tokens, lesson.logits, lesson.counted)
        if self._steps:
            shared = (self._embedding, self._head, self._steps)
            return unrolled_loss(part, *inputs, *shared, lesson.best)
        noise = noise_like(lesson.features, lesson.index)
        return feature_loss(part, *inputs, self._embedding, self._head, noise)

    def accepted(self, part: EagleCell, lesson: Lesson) -> Tensor:
        """See ``Student.accepted``. Measured with a chain of ``CHAIN`` tokens; the trees that the drafter uses in runs
        have more tokens."""
        shared = (self._embedding, self._head)
        return accepted(part, lesson.features, lesson.tokens, *shared, length=CHAIN)

    def measured(self, part: EagleCell, lessons: Iterable[Lesson]) -> dict:
        """The mean tokens per step of the cell for comparison and of the part, as entries of config.json; {} if there
        is no cell for comparison."""
        if self.rival is None:
            return {}
        before, after = [], []
        for lesson in lessons:
            start = int(lesson.counted[0].int().argmax())
            if self._before is None:
                before.append(walked(self.accepted(self.rival, lesson)[0].tolist(), start))
            after.append(walked(self.accepted(part, lesson)[0].tolist(), start))
        if self._before is None:
            self._before = sum(before) / len(before)
        return {BEFORE: round(self._before, 4), AFTER: round(sum(after) / len(after), 4)}

    @torch.no_grad()
    def save(self, part: EagleCell, folder: Path, about: Mapping) -> None:
        write_cell(part, folder, about)


def begun_by(cls: type[CellStudent], teacher: Teacher, settings: Mapping, folder: Path) -> Student:
    """A student of class ``cls`` whose part goes on from, or is compared with, the feature drafter in the folder.
    Raises UserError if the feature drafter is missing or belongs to another target."""
    if not (folder / "config.json").is_file():
        raise UserError(
            f"There is no feature drafter at {folder.name} to go on from: run the recipe `{cls.after or cls.key}` first, "
            "or name its folder (--start)."
        )
    check_belongs(folder, teacher.folder, "feature drafter")
    cell = cls.read(folder, torch.float32, str(teacher.module.device))
    width = teacher.module.config.get_text_config(decoder=True).hidden_size
    if cell.config.target_hidden_size != width:
        raise UserError(
            f"The feature drafter at {folder.name} reads states of {cell.config.target_hidden_size} numbers, and "
            f"those of {teacher.folder.name} have {width}."
        )
    student = cls(teacher.module, settings, cell.beside(teacher.module))
    student.settings["start"] = digest_of(folder)  # a resumed training must have the same start
    return student
