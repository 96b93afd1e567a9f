"""Acceptance heads, which predict from the draft model's hidden state how likely a drafted token is to be accepted.

Huang et al., SpecDec++: Boosting Speculative Decoding via Adaptive Candidate Lengths (2024). The input of a head is the
draft model's state after its final norm. The head has D residual blocks x + SiLU(linear(x)), then a layer with two
outputs: rejected and accepted.

The layout is that of the published checkpoints: ``model.{block}.linear.{weight,bias}`` for the blocks, then
``model.{D}.{weight,bias}``, of shape [2, H] and [2], where H is the draft model's hidden size. A head is trained for
one draft model and one target.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import UserError
from engine.parts.digest import digest_of
from engine.parts.module_part import ModulePart

DRAFT = "draftscope_draft"
"""The entry of the config that holds the digest of the draft model for which the head was trained."""
WEIGHT = "rejected_weight"
PUBLISHED_WEIGHT = 6.0
_BLOCK = re.compile(r"model\.(\d{1,2})\.linear\.(weight|bias)")


class AcceptanceHead(ModulePart):
    """An acceptance head. rejected_weight: the weight of a rejected token in the training loss, where an accepted one
    has 1. draft_digest: the digest of the draft model that the config names; None if it names none."""

    key, noun, reads_states = "acceptance_head", "acceptance head", False

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.out = nn.Linear(width, 2)
        self.rejected_weight = PUBLISHED_WEIGHT
        self.draft_digest: str | None = None

    @classmethod
    def of_files(cls, config, tensors, target):
        blocks = {int(match[1]) for name in tensors if (match := _BLOCK.fullmatch(name))}
        last = tensors.get(f"model.{len(blocks)}.weight")
        if last is None or last.ndim != 2:
            raise ValueError("its last layer is missing")
        return cls(len(blocks), last.shape[1])

    def settle(self, config, target, folder):
        self.rejected_weight = float(config.get(WEIGHT, PUBLISHED_WEIGHT))
        if not 0 < self.rejected_weight < 1e6:
            raise ValueError(f"its {WEIGHT} is not a positive number")
        named = config.get(DRAFT)
        self.draft_digest = named if isinstance(named, str) else None

    def fields(self):
        sizes = {"hidden_size": self.width, "num_layers": len(self.blocks)}
        return {**sizes, WEIGHT: self.rejected_weight, DRAFT: self.draft_digest}

    @classmethod
    def random(cls, width: int, layers: int = 1) -> AcceptanceHead:
        """Return an untrained head for a draft model whose states have this width. Its weights are random, so its
        predictions differ from token to token."""
        head = cls(layers, width)
        for weight in head.parameters():
            weight.data.normal_(0, 0.1)
        return head.eval().requires_grad_(False)

    @classmethod
    def tiny(cls, target, opener=None):
        return cls.random(target.hidden_size)

    @property
    def width(self) -> int:
        return self.out.in_features

    def forward(self, states: Tensor) -> Tensor:
        """Map the draft model's states [..., H] at drafted tokens to the log-odds [...] that these tokens are
        accepted."""
        for block in self.blocks:
            states = states + F.silu(block(states))
        refused, kept = self.out(states).unbind(-1)
        return kept - refused

    def chance(self, state: Tensor) -> float:
        """Return the chance that a token is accepted, from the draft model's state [H] at this token. It is computed
        with NumPy on the host: for products as small as these NumPy takes a third of torch's time."""
        (*blocks, out), row = self._arrays, state.float().cpu().numpy()
        for weight, bias in blocks:
            added = weight @ row + bias
            row = row + added / (1 + np.exp(-added))
        weight, bias = out
        refused, kept = weight @ row + bias
        return float(1 / (1 + np.exp(refused - kept)))

    @cached_property
    def _arrays(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The weights and biases of the blocks and of the last layer as NumPy arrays; they are made at the first
        prediction."""
        layers = (*self.blocks, self.out)
        pairs = ((layer.weight.detach(), layer.bias.detach()) for layer in layers)
        return [tuple(parameter.float().cpu().numpy() for parameter in pair) for pair in pairs]

    def names(self) -> dict[str, str]:
        """Return a dictionary from the published name of each weight to its name in this module."""
        kinds, last = ("weight", "bias"), len(self.blocks)
        names = {
            f"model.{block}.linear.{kind}": f"blocks.{block}.{kind}"
            for block in range(last)
            for kind in kinds
        }
        return names | {f"model.{last}.{kind}": f"out.{kind}" for kind in kinds}


def check_draft(head: AcceptanceHead, width: int, name: str, folder: str | None) -> None:
    """Raise UserError if the head was trained for another draft model than this one. width, name, folder: the hidden
    size, the name and the folder of this draft model."""
    digest = None if folder is None or not Path(folder).is_dir() else digest_of(folder)
    named = head.draft_digest
    if head.width != width or (named is not None and digest is not None and named != digest):
        raise UserError(f"The acceptance head was trained for another draft than {name}.")


KIND = AcceptanceHead.kind()
