"""Trains the adapter of Kangaroo by cross-entropy with the target's whole distribution, from the states after its first
layers.

Liu et al., "Kangaroo: Lossless Self-Speculative Decoding via Double Early Exiting" (2024). All layers below the adapter
are the target's own, and the target wrote the text, so one pass of the target gives both the states for the adapter and
the distributions that it learns.

Letters in shapes: S windows, T tokens of a window, H hidden size, V vocabulary.
"""

import torch
from torch import Tensor, nn

from engine.core.options import whole
from engine.errors import UserError
from engine.methods.kangaroo.drafter import KangarooDrafter
from engine.methods.kangaroo.part import PUBLISHED_EXIT, Adapter, AdapterConfig
from engine.model.layers import final_norm
from engine.training.distill import divergence_loss
from engine.training.new_models import attention_shape
from engine.training.student import Lesson, Student

DRAFTED = {option.name: option.default for option in KangarooDrafter.options}
"""The drafter's default options, with which the accepted length is measured."""


class KangarooStudent(Student):
    key = "kangaroo"
    summary = "the adapter of `kangaroo` behind the target's first layers"
    options = (
        whole("exit_layer", PUBLISHED_EXIT, 1, 64).meaning("Layers below the adapter."),
        whole("layers", 1, 1, 8).meaning("Attention blocks of the adapter."),
    )

    def __init__(self, target, settings) -> None:
        super().__init__(target, settings)
        if settings["exit_layer"] >= self.config.num_hidden_layers:
            raise UserError(
                f"An adapter behind {settings['exit_layer']} layers leaves none to verify with; the target has "
                f"{self.config.num_hidden_layers}."
            )

    @property
    def feature_layers(self):
        return (self.settings["exit_layer"],)

    def start(self):
        """Return an adapter that starts as the early exit alone: its blocks add nothing, and its norm is the target's
        if the target's norm is of the same kind."""
        adapter = Adapter(
            AdapterConfig(
                self.config.hidden_size,
                num_hidden_layers=self.settings["layers"],
                exit_layer=self.settings["exit_layer"],
                **attention_shape(self.config),
            )
        )
        for name, weight in adapter.named_parameters():
            if name.endswith("o_proj.weight"):
                nn.init.zeros_(weight)
            elif weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)
        norm = final_norm(self.target)
        if type(norm).__name__ == "LlamaRMSNorm":
            adapter.norm.weight.data.copy_(norm.weight)
        return adapter

    def logits(self, part: nn.Module, lesson: Lesson) -> Tensor:
        """Return the adapter's logits [S, T, V]; row t predicts token t + 1."""
        return self.target.get_output_embeddings()(part(lesson.features))

    def loss(self, part, lesson):
        keep = lesson.counted[:, 1:].float().flatten()
        student = self.logits(part, lesson)[:, :-1].flatten(0, 1)
        return divergence_loss(student, lesson.logits[:, :-1].flatten(0, 1), keep)

    def accepted(self, part, lesson):
        """Return the accepted lengths by the drafter's default options: at most ``length`` tokens, and none after a
        token less probable than ``confidence``."""
        sure, best = self.logits(part, lesson)[:, :-1].softmax(-1).max(-1)
        right = best == lesson.tokens[:, 1:]
        goes_on = right & (sure >= DRAFTED["confidence"])
        held = torch.zeros_like(lesson.tokens)
        for at in range(right.shape[1] - 1, -1, -1):
            behind = (1 + held[:, at + 1]) if at + 1 < held.shape[1] else 1
            held[:, at] = right[:, at] * torch.where(goes_on[:, at], behind, 1)
        return held.clamp(max=DRAFTED["length"])


STUDENT = KangarooStudent
