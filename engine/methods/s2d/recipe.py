"""Trains the nested draft model of S2D: the first layers, up to each exit, are a draft model, and all of them are
trained together.

Kavehzadeh et al., S2D (2024), after sorted fine-tuning. The draft models up to the exits are called sub-models; they
share their layers, the final norm and the head. The loss is the sum of the losses of all sub-models. Here each
sub-model is distilled from the target's distributions.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from engine.core.options import choice, whole
from engine.methods.s2d.part import EXITS
from engine.training.distill import divergence_loss
from engine.training.divergences import DIVERGENCES
from engine.training.new_models import draft_config
from engine.training.student import Lesson
from engine.training.students.draft_students import DraftStudent


class SortedStudent(DraftStudent):
    key = "s2d"
    summary = "a nested draft with exits behind 1, 2 and 4 layers"
    options = (
        whole("layers", 4, 2, 8).meaning("Of the whole draft; exits behind 1, 2, 4, 8 of them."),
        choice("divergence", "forward_kl", (*DIVERGENCES,)).meaning("The loss."),
    )
    muon_rate, adam_rate = 0.02, 3e-3

    @classmethod
    def of(cls, teacher, settings):
        return cls(teacher.module, settings, teacher.tokenizer, None)

    @property
    def exits(self) -> tuple[int, ...]:
        layers = self.settings["layers"]
        return tuple(sorted({layer for layer in (1, 2, 4) if layer < layers} | {layers}))

    @property
    def logit_sets(self) -> int:
        return len(self.exits)

    def first(self) -> nn.Module:
        end, layers = self.tokenizer.eos_token_id, self.settings["layers"]
        return LlamaForCausalLM(draft_config(self.config.vocab_size, end, layers))

    def logits(self, part: nn.Module, tokens: Tensor) -> list[Tensor]:
        """Return the logits after each exit, one tensor [S, T, V] for each exit, for S texts of T tokens."""
        output = part(input_ids=tokens, use_cache=False, output_hidden_states=True)
        early = (output.hidden_states[layer] for layer in self.exits[:-1])
        return [*(part.lm_head(part.model.norm(states)) for states in early), output.logits]

    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        keep = lesson.counted[:, 1:]
        teacher, weights = lesson.logits[:, :-1][keep], lesson.tokens.new_ones(int(keep.sum()))
        divergence = DIVERGENCES[self.settings["divergence"]]
        return sum(
            divergence_loss(logits[:, :-1][keep], teacher, weights.float(), divergence)
            for logits in self.logits(part, lesson.tokens)
        )

    @torch.no_grad()
    def measured(self, part: nn.Module, lessons: Iterable[Lesson]) -> dict:
        all_lessons = list(lessons)
        kept: list[list[Tensor]] = [[] for _ in self.exits]
        for lesson in all_lessons:
            keep = lesson.counted[:, 1:]
            p = F.softmax(lesson.logits[:, :-1][keep], -1)
            for rows, logits in zip(kept, self.logits(part, lesson.tokens), strict=True):
                rows.append(torch.minimum(p, F.softmax(logits[:, :-1][keep], -1)).sum(-1))
        shares = (round(float(torch.cat(rows).mean()), 4) for rows in kept)
        of_exits = {str(layer): share for layer, share in zip(self.exits, shares, strict=True)}
        return {**super().measured(part, all_lessons), "kept_by_exit": of_exits}

    def report(self, figures: Mapping) -> str:
        shares = ", ".join(f"{layer}: {share}" for layer, share in figures["kept_by_exit"].items())
        return f"{super().report(figures)}\nkept at temperature 1 by exit: {shares}"

    def save(self, part: nn.Module, folder: Path, about: Mapping) -> None:
        super().save(part, folder, {EXITS: list(self.exits), **about})


STUDENT = SortedStudent
