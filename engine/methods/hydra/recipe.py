"""Trains Hydra: heads that read the tokens drafted before their own.

The heads start as Medusa's, with zero weights for the embeddings. teacher=true is the objective of Hydra++: the
target's distribution in place of the written token. prefix=true and layers=4 also belong to Hydra++.
"""

from torch import Tensor

from engine.core.options import switch, whole
from engine.methods.hydra.part import HydraHeads
from engine.training.student import Lesson
from engine.training.students.head_students import HeadsStudent, token_loss


class HydraStudent(HeadsStudent):
    key = "hydra"
    summary = "heads on the last state that read the tokens drafted before their own"
    options = (
        whole("heads", 4, 1, 16).meaning("Heads."),
        whole("layers", 1, 1, 8).meaning("Residual blocks of each head."),
        switch("shared", False).meaning("Whether the target's own head gives all logits."),
        switch("prefix", False).meaning("Whether a layer of attention reads the states first."),
        switch("teacher", True).meaning("Whether the target's distributions are learned."),
    )

    def start(self) -> HydraHeads:
        shape = {name: value for name, value in self.settings.items() if name != "teacher"}
        return HydraHeads.beginning(self.target, **shape)

    def states(self, part: HydraHeads, lesson: Lesson) -> Tensor:
        return part.states(lesson.features)

    def logits(self, part: HydraHeads, head: int, states: Tensor, lesson: Lesson) -> Tensor:
        tokens = lesson.tokens[:, 1:-1].unfold(1, head + 1, 1)  # [S, T - 2 - head, head + 1]
        embeddings = self.target.get_input_embeddings()(tokens)
        hidden = part.hidden(head, states, embeddings)
        own = self.target.get_output_embeddings() if part.shares_head else part.lm_head[head]
        return own(hidden)

    def head_loss(self, logits: Tensor, head: int, lesson: Lesson) -> Tensor:
        loss = super().head_loss if self.settings["teacher"] else token_loss
        return loss(logits, head, lesson)


STUDENT = HydraStudent
