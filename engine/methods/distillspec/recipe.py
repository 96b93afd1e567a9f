"""DistillSpec: a draft learns the target's distributions on text that the draft itself writes.

Zhou et al., DistillSpec: Improving Speculative Decoding via Knowledge Distillation (ICLR 2024). Its two choices are
options here: which share of the batches is on-policy (the draft continues the beginnings of the windows with its own
draws, and the target gives its distributions there), and which divergence is the loss. The other batches are the
target's own text and the corpora, in turn.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.core.options import Option
from engine.training.distill import draft_loss
from engine.training.divergences import LOSSES, loss_named
from engine.training.on_policy import continued
from engine.training.student import Lesson, taught
from engine.training.students.draft_students import DraftStudent


class DistilledStudent(DraftStudent):
    key = "distillspec"
    summary = "a draft distilled on its own text, with the divergence of your choice"
    options = (
        Option("divergence", "choice", "forward_kl", "The loss.", choices=LOSSES),
        Option("on_policy", "float", 0.5, "Share of batches that the draft writes.", 0.0, 1.0),
    )
    muon_rate, adam_rate = 0.005, 1e-3

    @property
    def logit_sets(self) -> int:
        return 2

    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        noise = torch.Generator().manual_seed(lesson.index)
        if torch.rand((), generator=noise) < self.settings["on_policy"]:
            lesson = self.own_lesson(part, lesson, noise)
        divergence = loss_named(self.settings["divergence"], lesson.index)
        return draft_loss(part, lesson, lesson.tokens, lesson.counted, divergence)

    def own_lesson(self, part: nn.Module, lesson: Lesson, noise: torch.Generator) -> Lesson:
        """The windows' beginnings, an eighth to a half, continued by the draft; only what it wrote counts."""
        length = lesson.tokens.shape[1]
        given = int(torch.randint(length // 8, length // 2 + 1, (1,), generator=noise))
        tokens = continued(part, lesson.tokens[:, :given], length, noise)
        written = (torch.arange(length) >= given).expand(tokens.shape)
        return taught(self.target, self.feature_layers, tokens, written, lesson.index)


STUDENT = DistilledStudent
