"""Trains a Falcon cell by glancing distillation of blocks (``engine.methods.falcon.falcon_training``)."""

from torch import Tensor

from engine.core.options import whole
from engine.methods.falcon.falcon_training import accepted, block_loss, new_cell
from engine.methods.falcon.part import FalconCell
from engine.training.cell_training import noise_like
from engine.training.student import Lesson, Student


class FalconStudent(Student):
    key = "falcon"
    summary = "a cell that predicts the target's features, a block at a time"
    options = (whole("block", 2, 2, 8).meaning("Tokens of a draft pass."),)

    def __init__(self, target, settings) -> None:
        super().__init__(target, settings)
        self._shared = (target.get_input_embeddings(), target.get_output_embeddings())

    @property
    def logit_sets(self) -> int:
        return 3  # one for each pass, and one for the tokens between them

    def start(self) -> FalconCell:
        return new_cell(self.target, self.config, self.settings["block"])

    def loss(self, part: FalconCell, lesson: Lesson) -> Tensor:
        pass_of_target = (lesson.features, lesson.tokens, lesson.logits, lesson.counted)
        noise = noise_like(lesson.features, lesson.index)
        return block_loss(part, *pass_of_target, *self._shared, noise, lesson.index)

    def accepted(self, part: FalconCell, lesson: Lesson) -> Tensor:
        """Return the accepted lengths when a single greedy block is drafted. The drafter's tree has more tokens, so its
        accepted lengths are larger."""
        return accepted(part, lesson.features, lesson.tokens, *self._shared)


STUDENT = FalconStudent
