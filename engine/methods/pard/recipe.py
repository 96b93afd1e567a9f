"""Trains PARD's draft model: a draft model (the one at ``--draft``, otherwise that of the target's family) is trained
further to predict tokens at masks.

In the loss, the draft model's laws are compared with the target's, at the tokens of the text and at the masks after
them. Some of the masks are left out at random (conditional drop, ``engine.training.masked_rows``). The paper's loss is
instead the ordinary loss on next tokens, in text that the target wrote.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.core.options import Option
from engine.methods.pard.part import MASK
from engine.training.diffusion import mask_token
from engine.training.masked_rows import (
    MaskedRows,
    dropped,
    masked_accepted,
    masked_loss,
    row_sets,
)
from engine.training.student import Lesson
from engine.training.students.draft_students import DraftStudent


class PardStudent(DraftStudent):
    key = "pard"
    summary = "a draft model that learns to draft all tokens in one pass"
    options = (Option("tokens", "int", 8, "Tokens of a draft.", 2, 32),)
    muon_rate, adam_rate = 0.005, 1e-3
    mask = 0

    @classmethod
    def of(cls, teacher, settings):
        student = super().of(teacher, settings)
        student.mask = mask_token(teacher)
        return student

    @property
    def logit_sets(self) -> int:
        return row_sets(self.settings["tokens"])

    def first(self) -> nn.Module:
        draft = super().first()
        setattr(draft.config, MASK, getattr(draft.config, MASK, self.mask))
        return draft

    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        length, device = lesson.tokens.shape[1], lesson.tokens.device
        rows = dropped(length, self.settings["tokens"], lesson.index, device)
        states = self._read(part, lesson, rows)
        head = part.get_output_embeddings()
        return masked_loss(rows, states, head, lesson.logits, lesson.counted)

    def accepted(self, part: nn.Module, lesson: Lesson) -> Tensor:
        head = part.get_output_embeddings()

        def guess(rows: MaskedRows) -> Tensor:
            return head(self._read(part, lesson, rows)).argmax(-1)

        length = lesson.tokens.shape[1]
        return masked_accepted(guess, lesson.tokens, length, self.settings["tokens"])

    def _read(self, part: nn.Module, lesson: Lesson, rows: MaskedRows) -> Tensor:
        """Return the draft model's last hidden states [S, R, H] at these rows, which are tokens of the text and
        masks."""
        mask = torch.tensor(getattr(part.config, MASK), device=lesson.tokens.device)
        sees = rows.sees[None, None].expand(len(lesson.tokens), 1, -1, -1)
        return part.base_model(
            input_ids=rows.filled(lesson.tokens, mask),
            position_ids=rows.places[None],
            attention_mask=sees,
            use_cache=False,
        ).last_hidden_state


STUDENT = PardStudent
