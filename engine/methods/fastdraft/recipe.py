"""FastDraft: a draft model is pre-trained on plain text, then fine-tuned on text that the target wrote.

Zafrir et al., FastDraft: How to Train Your Draft (ACL Findings 2025). Both stages use a language model's ordinary loss
on next tokens. The second stage is sequence-level distillation, because its text was written by the target, at several
temperatures. If there are no corpora for a target, both stages use only the text that the target wrote.
"""

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from engine.core.options import number, whole
from engine.training.new_models import draft_config
from engine.training.student import Lesson
from engine.training.students.draft_students import DraftStudent


class FastDraftStudent(DraftStudent):
    key = "fastdraft"
    summary = "a draft pre-trained on corpora, then fine-tuned on the target's own text"
    options = (
        number("pretraining", 0.5, 0.0, 1.0).meaning(
            "Share of the training that is pre-training; 0 begins with the draft that there is."
        ),
        whole("layers", 2, 1, 8).meaning("Of a draft that begins from nothing."),
    )
    muon_rate, adam_rate = 0.02, 3e-3
    reads_target = False

    @classmethod
    def of(cls, teacher, settings):
        draft = None if settings["pretraining"] else teacher.draft
        return cls(teacher.module, settings, teacher.tokenizer, draft)

    def mixture(self, progress: float) -> tuple[int, int]:
        return (0, 1) if progress < self.settings["pretraining"] else (1, 0)

    def first(self) -> nn.Module:
        if self.draft is not None:
            return super().first()
        end = self.tokenizer.eos_token_id
        layers = self.settings["layers"]
        return LlamaForCausalLM(draft_config(self.config.vocab_size, end, layers))

    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        keep = lesson.counted[:, 1:]
        logits = part(input_ids=lesson.tokens, use_cache=False).logits[:, :-1][keep]
        return F.cross_entropy(logits.float(), lesson.tokens[:, 1:][keep])


STUDENT = FastDraftStudent
