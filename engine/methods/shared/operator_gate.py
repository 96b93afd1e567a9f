"""Operators that reduce a picture to fewer rows for a draft model, and a gate that chooses an operator from the
target's hidden state.

Huang et al., SpecVLM: Fast Speculative Decoding in Vision-Language Models (2025). A picture is a grid of patches, and
each patch is one embedding for the draft model. Pruning keeps one patch of each row of the grid (the paper may keep any
patches). Pooling turns each row of the grid into the mean of its patches; convolution turns it into a linear map of
them. The resampler turns all patches into two embeddings, by attention from two learned queries. With the operator
"text only" the draft model gets no patch. The input of the gate is the hidden state at the end of the question.

Letters in shapes: P patches, K embeddings that stand for them, H hidden size of the draft model, Ht that of the target.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.model.captions import pooled
from engine.parts.module_part import ModulePart

TEXT_ONLY, PRUNED, POOLED, CONVOLUTION, RESAMPLER = OPERATORS = (
    *("text only", "pruned", "pooled", "convolution", "resampler"),
)
QUESTIONS = 2  # learned queries of the resampler


class OperatorGate(ModulePart):
    """The gate and the weights of the operators. The gate is one linear layer on the hidden state before the target's
    last layer. across: the number of patches in a row of the grid; the convolution takes one row of the grid at a
    time."""

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
        """The gate and the operators before training; the convolution starts as the mean of a row of patches."""
        gate = cls(width, draft_width, across)
        identity = torch.eye(draft_width)
        gate.convolution.weight.data = identity.repeat(1, across) / across
        gate.values.weight.data = identity
        return gate

    @classmethod
    def tiny(cls, target, opener=None):
        across = target.side // target.patch if hasattr(target, "patch") else 3
        return cls(target.hidden_size, target.hidden_size, across).eval().requires_grad_(False)

    def forward(self, states: Tensor) -> Tensor:
        """Return the score of each operator for the target's hidden states: [.., Ht] -> [.., operators]."""
        return self.out(states)

    def kept(self, patches: int) -> list[int]:
        """Return the indices of the patches, out of ``patches``, that pruning keeps: one of each row of the grid, and
        no two in the same column of a frame."""
        across = self.across
        return [place for place in range(patches) if place % across == place // across % across]

    def looks(self, rows: Tensor) -> Tensor:
        """Return the attention weights of the resampler's learned queries on the patches: [.., P, H] -> [.., queries,
        P]."""
        scale = rows.shape[-1] ** -0.5
        return (self.questions @ self.keys(rows).mT * scale).softmax(-1)

    def reduced(self, operator: str, rows: Tensor) -> Tensor:
        """Apply an operator to P patches [.., P, H]; returns the K embeddings [.., K, H] that stand for them."""
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
        """Return the weight, 0 to 1, that each of the patches [P, H] has in the embeddings that an operator makes of
        them."""
        count = len(rows)
        if operator == PRUNED:
            kept = self.kept(count)
            return [float(place in kept) for place in range(count)]
        if operator == RESAMPLER:
            return self.looks(rows).amax(0).tolist()
        return [1 / self.across] * count
