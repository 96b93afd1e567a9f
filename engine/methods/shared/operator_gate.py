"""Ways to make a picture smaller for a draft model, and the gate that picks one from the target's state at the end of a question.

Huang et al., SpecVLM: Fast Speculative Decoding in Vision-Language Models (2025). The patches are rows of embeddings of the draft
model: of three side by side one is kept (the paper keeps any), or they become one, as their mean or by a convolution; a resampler
makes two rows of all, the answers to two learned questions.

Letters in shapes: P patches, K rows that stand for them, H width of the draft model.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.model.captions import pooled
from engine.parts.module_part import ModulePart

TEXT_ONLY, PRUNED, POOLED, CONVOLUTION, RESAMPLER = OPERATORS = (
    *("text only", "pruned", "pooled", "convolution", "resampler"),
)
QUESTIONS = 2  # of the resampler


class OperatorGate(ModulePart):
    """One linear layer on the hidden state before the target's last layer, and the operators that have weights. across: patches of
    a side, all of which the convolution reads at once."""

    key, noun = "operator_gate", "gate of operators"

    def __init__(self, width: int, draft_width: int, across: int) -> None:
        super().__init__()
        self.across, self.draft_width = across, draft_width
        self.out = nn.Linear(width, len(OPERATORS))
        self.convolution = nn.Linear(across * draft_width, draft_width, bias=False)
        self.questions = nn.Parameter(torch.randn(QUESTIONS, draft_width))
        self.keys = nn.Linear(draft_width, draft_width, bias=False)
        self.values = nn.Linear(draft_width, draft_width, bias=False)

    @classmethod
    def of_files(cls, config, tensors, target):
        wide, draft = (tensors[name].shape[-1] for name in ("out.weight", "keys.weight"))
        if target is not None and wide != target.hidden_size:
            raise ValueError("its states have another size")
        return cls(wide, draft, max(1, tensors["convolution.weight"].shape[-1] // draft))

    def fields(self):
        return {"hidden_size": self.out.in_features, "operators": list(OPERATORS)}

    @classmethod
    def beginning(cls, width: int, draft_width: int, across: int) -> OperatorGate:
        """The convolution begins as the mean."""
        made = cls(width, draft_width, across)
        one = torch.eye(draft_width)
        made.convolution.weight.data = one.repeat(1, across) / across
        made.values.weight.data = one
        return made

    @classmethod
    def tiny(cls, target, opener=None):
        across = target.side // target.patch if hasattr(target, "patch") else 3
        return cls(target.hidden_size, target.hidden_size, across).eval().requires_grad_(False)

    def forward(self, states: Tensor) -> Tensor:
        """[.., H of the target] -> scores [.., operators]"""
        return self.out(states)

    def kept(self, patches: int) -> list[int]:
        """The places that are left of so many patches: one of each row, no two of a frame in one column."""
        across = self.across
        return [place for place in range(patches) if place % across == place // across % across]

    def looks(self, rows: Tensor) -> Tensor:
        """[.., P, H] -> [.., questions, P]: how much the resampler's questions look at each patch."""
        scale = rows.shape[-1] ** -0.5
        return (self.questions @ self.keys(rows).mT * scale).softmax(-1)

    def reduced(self, operator: str, rows: Tensor) -> Tensor:
        """[.., P, H] -> [.., K, H]"""
        if operator == TEXT_ONLY:
            return rows[..., :0, :]
        if operator == PRUNED:
            return rows[..., self.kept(rows.shape[-2]), :]
        if operator == POOLED:
            return pooled(rows, self.across)
        if operator == CONVOLUTION:
            return self.convolution(rows.unflatten(-2, (-1, self.across)).flatten(-2))
        return self.looks(rows) @ self.values(rows)

    def weights(self, operator: str, rows: Tensor) -> list[float]:
        """How much each patch [P, H] weighs in what is left of the picture."""
        count = len(rows)
        if operator == PRUNED:
            kept = self.kept(count)
            return [float(place in kept) for place in range(count)]
        if operator == RESAMPLER:
            return self.looks(rows).amax(0).tolist()
        return [1 / self.across] * count
