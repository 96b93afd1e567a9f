"""A gate that picks, from the target's state at the end of a question, how a picture is made smaller for the draft model."""

from __future__ import annotations

from torch import Tensor, nn

from engine.parts.module_part import ModulePart

OPERATORS = ("text only", "pruned", "pooled")


class OperatorGate(ModulePart):
    """A gate: a linear layer on the hidden state before the target's last layer."""

    key, noun = "operator_gate", "gate of operators"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, len(OPERATORS))

    @classmethod
    def of_files(cls, config, tensors, target):
        made = cls(tensors["out.weight"].shape[-1])
        if target is not None and made.out.in_features != target.hidden_size:
            raise ValueError("its states have another size")
        return made

    def fields(self):
        return {"hidden_size": self.out.in_features, "operators": list(OPERATORS)}

    @classmethod
    def tiny(cls, target, opener=None):
        return cls(target.hidden_size).eval().requires_grad_(False)

    def forward(self, states: Tensor) -> Tensor:
        """[.., H] -> scores [.., operators]"""
        return self.out(states)
