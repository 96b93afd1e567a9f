"""The draft model sees a smaller picture or none; a gate that knows the question picks the operator that makes the
picture smaller.

Huang et al., SpecVLM: Fast Speculative Decoding in Vision-Language Models (2025), with all of the paper's operators
(``engine.methods.shared.operator_gate``) and its default mode, in which the gate picks one operator. The paper's draft
model is a cell that takes the target's hidden states as input. Here it is an ordinary draft model that was trained on
whole, pruned and pooled pictures alike.
"""

import torch

from engine.core.exhibits import Table
from engine.errors import UserError
from engine.methods.shared.operator_gate import OPERATORS, TEXT_ONLY
from engine.methods.shared.seen_patches import PartSeenChain, SeenPart


class SpecVLMDrafter(PartSeenChain):
    key = "specvlm"
    title = "Picture made smaller, SpecVLM"
    summary = "A draft model sees a picture made smaller in one of four ways, or none, as a trained gate picks."
    needs = {**PartSeenChain.needs, "gate": "operator_gate"}
    feature_rows = 1

    @classmethod
    def build(cls, settings, models):
        drafter = super().build(settings, models)
        drafter._gate = models.part("gate")
        drafter.feature_layers = (models.target.layers - 1,)
        if drafter._target is not None and drafter._gate.draft_width != drafter._whole.hidden_size:
            raise UserError("The gate of operators was trained with another draft model.")
        return drafter

    @torch.no_grad()
    def look(self, start):
        if start.features is None or not len(start.features):
            return None
        self._chances = self._gate(start.features[-1:].float()).softmax(-1)[0].tolist()
        operator = OPERATORS[max(range(len(OPERATORS)), key=self._chances.__getitem__)]
        if operator == TEXT_ONLY:
            return None
        rows = self._whole.rows_of(self._target.pixels).float()
        model = self._whole.with_rows(self._gate.reduced(operator, rows))
        return SeenPart(model, model.patch_tokens, self._gate.weights(operator, rows))

    def _show(self, tree):
        super()._show(tree)
        if self._target is not None:
            rows = list(zip(OPERATORS, self._chances, strict=True))
            tree.exhibits.append(
                Table("How the draft sees the picture", ("operator", "gate"), rows)
            )
