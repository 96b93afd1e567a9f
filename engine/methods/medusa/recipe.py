"""Trains Medusa-1: heads on a frozen target, each of which learns the token a fixed number of places later.

The paper's recipe: the loss is the cross-entropy of each head, and head k has the weight 0.8^k. Blocks begin as the
identity. Projections begin as the target's head; with shared=true the heads use the target's head itself, frozen.
"""

from torch import Tensor

from engine.core.options import switch, whole
from engine.methods.medusa.part import MedusaHeads
from engine.training.student import Lesson
from engine.training.students.head_students import HeadsStudent, token_loss


class MedusaStudent(HeadsStudent):
    key = "medusa"
    summary = "heads on the last state, each for one later token"
    options = (
        whole("heads", 4, 1, 16).meaning("Heads."),
        whole("layers", 1, 1, 8).meaning("Residual blocks of each head."),
        switch("shared", False).meaning("Whether the target's own head gives all logits."),
    )

    def start(self) -> MedusaHeads:
        return MedusaHeads.beginning(self.target, **self.settings)

    def logits(self, part: MedusaHeads, head: int, states: Tensor, lesson: Lesson) -> Tensor:
        own = self.target.get_output_embeddings() if part.shares_head else part.lm_head[head]
        return own(part.hidden(head, states))

    def head_loss(self, logits: Tensor, head: int, lesson: Lesson) -> Tensor:
        return token_loss(logits, head, lesson)


STUDENT = MedusaStudent
