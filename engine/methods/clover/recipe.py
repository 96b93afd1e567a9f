"""Trains Clover: a recurrent cell after an augmenting block learns the target's distributions.

At the start the cell returns the target's state unchanged. From this state, the target's head predicts the token before
the one that the cell has to predict.
"""

import torch.nn.functional as F
from torch import Tensor

from engine.core.options import whole
from engine.methods.clover.part import USUAL_HEADS, CloverHeads
from engine.training.student import Lesson
from engine.training.students.head_students import HeadsStudent


class CloverStudent(HeadsStudent):
    key = "clover"
    summary = "a recurrent cell that passes its state from drafted token to drafted token"
    options = (
        whole("heads", USUAL_HEADS, 1, 16).meaning("Tokens it learns to draft."),
        whole("layers", 1, 1, 8).meaning("Layers of the augmenting block."),
    )

    def start(self) -> CloverHeads:
        return CloverHeads.beginning(self.target, **self.settings)

    def states(self, part: CloverHeads, lesson: Lesson) -> Tensor:
        return part.states(lesson.features, self._embedded(lesson.tokens.roll(-1, 1)))

    def logits(self, part: CloverHeads, head: int, states: Tensor, lesson: Lesson) -> Tensor:
        hidden, embedding = states, None
        for before in range(head):
            embedding = self._embedded(lesson.tokens[:, 2 + before :][:, : hidden.shape[1]])
            hidden = part.next(hidden, embedding)
        return self.target.get_output_embeddings()(part.spoken(hidden, embedding))

    def _embedded(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.target.get_output_embeddings().weight)


STUDENT = CloverStudent
