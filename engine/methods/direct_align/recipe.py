"""Direct alignment: a pre-trained draft model is fine-tuned with TVD++ on text that the target wrote.

Goel et al., Direct Alignment of Draft Model for Speculative Decoding with Chat-Fine-Tuned LLMs (2024). TVD++ computes
the gradient of the total variation as a policy gradient with normalised rewards (``divergences.tvd_plus_plus``). Of
every ten training windows, nine are text that the target wrote and one is pre-training text, as in the paper.
"""

from functools import partial

import torch
from torch import Tensor, nn

from engine.core.options import switch, whole
from engine.training.distill import draft_loss
from engine.training.divergences import DRAWS, tvd_plus_plus
from engine.training.student import Lesson
from engine.training.students.draft_students import DraftStudent


class AlignedStudent(DraftStudent):
    key = "direct_align"
    summary = "a draft fine-tuned with TVD++ on the target's own text"
    options = (
        whole("draws", DRAWS, 1, 256).meaning("Tokens drawn from q at each place."),
        switch("reduced", True).meaning("Normalise the rewards; without, it is plain TVD."),
    )
    muon_rate, adam_rate = 0.005, 1e-3

    @property
    def logit_sets(self) -> int:
        return 2

    def mixture(self, progress: float) -> tuple[int, int]:
        return 9, 1

    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        noise = torch.Generator().manual_seed(lesson.index)
        how = {"draws": self.settings["draws"], "reduced": self.settings["reduced"]}
        divergence = partial(tvd_plus_plus, noise=noise, **how)
        return draft_loss(part, lesson, lesson.tokens, lesson.counted, divergence)


STUDENT = AlignedStudent
