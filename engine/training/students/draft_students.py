"""The common part of the recipes that produce a draft model: its start, how it is measured, and its files.

The result is a draft like any other: ``chain`` takes it with ``--draft DIR``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.training.checkpoint import export_model
from engine.training.counted_acceptance import chain_lengths
from engine.training.divergences import DIVERGENCES
from engine.training.student import Lesson, Student

CHAIN_LENGTH = 4  # length of the greedy chains that measure the accepted length
KEPT = "kept_at_temperature_1"


class DraftStudent(Student):
    """draft: the frozen model that it starts from; None where it starts from scratch."""

    def __init__(self, target, settings, tokenizer, draft: PreTrainedModel | None) -> None:
        super().__init__(target, settings)
        self.tokenizer, self.draft = tokenizer, draft
        self.before: nn.Module | None = None

    @classmethod
    def of(cls, teacher, settings):
        return cls(teacher.module, settings, teacher.tokenizer, teacher.draft)

    def start(self) -> nn.Module:
        made = self.first().requires_grad_(True)
        self.before = copy.deepcopy(made).eval().requires_grad_(False)
        return made

    def first(self) -> nn.Module:
        """The draft before its training."""
        return copy.deepcopy(self.draft)

    def accepted(self, part: nn.Module, lesson: Lesson) -> Tensor:
        best = part(input_ids=lesson.tokens, use_cache=False).logits[:, :-1].argmax(-1)
        return chain_lengths(best == lesson.tokens[:, 1:], CHAIN_LENGTH)

    def measured(self, part: nn.Module, lessons: Iterable[Lesson]) -> dict:
        """Before and after: the chance that the target keeps a token drawn from q at temperature 1, and all
        divergences."""
        known = list(lessons)
        return {"before": distances(self.before, known), "after": distances(part, known)}

    def report(self, found: Mapping) -> str:
        """The table of what ``measured`` found."""
        names = list(found["before"])
        lines = [f"{'':>22} {'before':>8} {'after':>8}"]
        lines += [
            f"{name:>22} {found['before'][name]:8.4f} {found['after'][name]:8.4f}" for name in names
        ]
        return "\n".join(lines)

    def save(self, part: nn.Module, folder: Path, about: Mapping) -> None:
        export_model(part, folder, self.tokenizer, about)


@torch.no_grad()
def distances(draft: nn.Module, lessons: Iterable[Lesson]) -> dict[str, float]:
    """Means over the counted tokens: sum min(p, q), and each divergence."""
    found: dict[str, list[Tensor]] = {KEPT: []} | {name: [] for name in DIVERGENCES}
    for lesson in lessons:
        keep = lesson.counted[:, 1:]
        logits = draft(input_ids=lesson.tokens, use_cache=False).logits[:, :-1][keep]
        log_q = F.log_softmax(logits.float(), -1)
        log_p = F.log_softmax(lesson.logits[:, :-1][keep].float(), -1)
        found[KEPT].append(torch.minimum(log_p, log_q).exp().sum(-1))
        for name, divergence in DIVERGENCES.items():
            found[name].append(divergence(log_q, log_p))
    return {name: round(float(torch.cat(rows).mean()), 4) for name, rows in found.items()}
