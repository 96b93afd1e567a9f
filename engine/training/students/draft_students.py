"""The base class of students whose part is a draft model: how it starts, what is measured, and its files.

A trained draft model can be used like any other: the drafter ``chain`` takes it with ``--draft DIR``.
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

CHAIN_LENGTH = 4  # tokens of the greedy chains by which the accepted length is measured
KEPT = "kept_at_temperature_1"


class DraftStudent(Student):
    """A student whose part is a draft model. draft: the frozen draft model from which the part starts; None: it starts
    from random weights. before: a frozen copy of the part as it was before the training."""

    def __init__(self, target, settings, tokenizer, draft: PreTrainedModel | None) -> None:
        super().__init__(target, settings)
        self.tokenizer, self.draft = tokenizer, draft
        self.before: nn.Module | None = None

    @classmethod
    def of(cls, teacher, settings):
        return cls(teacher.module, settings, teacher.tokenizer, teacher.draft)

    def start(self) -> nn.Module:
        draft = self.first().requires_grad_(True)
        self.before = copy.deepcopy(draft).eval().requires_grad_(False)
        return draft

    def first(self) -> nn.Module:
        """The part before its training; by default a copy of ``draft``."""
        return copy.deepcopy(self.draft)

    def accepted(self, part: nn.Module, lesson: Lesson) -> Tensor:
        best = part(input_ids=lesson.tokens, use_cache=False).logits[:, :-1].argmax(-1)
        return chain_lengths(best == lesson.tokens[:, 1:], CHAIN_LENGTH)

    def measured(self, part: nn.Module, lessons: Iterable[Lesson]) -> dict:
        """The ``distances`` between draft model and target, before the training and now."""
        all_lessons = list(lessons)
        return {
            "before": distances(self.before, all_lessons),
            "after": distances(part, all_lessons),
        }

    def report(self, found: Mapping) -> str:
        """A table of the figures. found: the result of ``measured``."""
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
    """Name -> a mean over the counted tokens. One name is the chance that the target accepts a token drawn from q at
    temperature 1, sum min(p, q); the other names are those of the divergences."""
    values: dict[str, list[Tensor]] = {KEPT: []} | {name: [] for name in DIVERGENCES}
    for lesson in lessons:
        keep = lesson.counted[:, 1:]
        logits = draft(input_ids=lesson.tokens, use_cache=False).logits[:, :-1][keep]
        log_q = F.log_softmax(logits.float(), -1)
        log_p = F.log_softmax(lesson.logits[:, :-1][keep].float(), -1)
        values[KEPT].append(torch.minimum(log_p, log_q).exp().sum(-1))
        for name, divergence in DIVERGENCES.items():
            values[name].append(divergence(log_q, log_p))
    return {name: round(float(torch.cat(rows).mean()), 4) for name, rows in values.items()}
