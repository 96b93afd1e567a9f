"""Medusa heads: each predicts one later token from the target's last hidden state.

Cai et al., Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads (2024). Head k (from 0)
reads the state, after the final norm, that predicted the token at t + 1, and predicts the token at t + 2 + k. A head
consists of residual blocks x + SiLU(linear(x)) and a projection to the vocabulary.

The layout of the published checkpoints: ``{head}.{layer}.linear.{weight,bias}`` and, after the L blocks of a head, its
projection ``{head}.{L}.weight``; the prefix ``medusa_head.`` may stand before all names. A checkpoint without
projections shares the target's head. The names give the numbers of heads and blocks; the config's numbers are ignored.

Letters in shapes: K heads, L blocks of a head, H hidden size, V vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.methods.shared.head_ranks import HeadsPart
from engine.parts.files import WEIGHTS

PREFIX = "medusa_head."
_BLOCK = re.compile(r"(\d{1,3})\.(\d{1,3})\.linear\.(weight|bias)")
_PROJECTION = re.compile(r"(\d{1,3})\.(\d{1,3})\.weight")


class MedusaHeads(HeadsPart):
    key, noun = "medusa_heads", "set of Medusa heads"
    files = ("medusa_lm_head.safetensors", WEIGHTS)

    def __init__(self, heads: int, layers: int, width: int, vocabulary: int | None) -> None:
        """vocabulary: the size of the heads' own projections; None if they share the target's head."""
        super().__init__(heads)
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Linear(width, width) for _ in range(layers)) for _ in range(heads)
        )
        self.lm_head = nn.ModuleList(
            nn.Linear(width, vocabulary, bias=False)
            for _ in range(0 if vocabulary is None else heads)
        )

    @classmethod
    def of_files(cls, config, tensors, target):
        heads, layers, projections = _count(tensors)
        return cls(heads, layers, target.hidden_size, target.vocab_size if projections else None)

    @classmethod
    def tensors_of(cls, config, tensors):
        return {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}

    @classmethod
    @torch.no_grad()
    def beginning(
        cls, target: PreTrainedModel, heads: int = 2, layers: int = 1, shared: bool = False
    ) -> MedusaHeads:
        """Return untrained heads: blocks that are the identity, and copies of the target's head as projections. shared:
        whether the target's head itself gives the logits."""
        head = target.get_output_embeddings().weight
        part = cls(heads, layers, head.shape[1], None if shared else len(head))
        for weight in part.blocks.parameters():
            weight.zero_()
        for projection in part.lm_head:
            projection.weight.copy_(head)
        return part

    @property
    def shares_head(self) -> bool:
        """Whether the target's head gives the logits."""
        return not self.lm_head

    def hidden(self, head: int, state: Tensor) -> Tensor:
        """Map states [..., H] to the hidden states [..., H] of one head, before its projection."""
        for block in self.blocks[head]:
            state = state + F.silu(block(state))
        return state

    def forward(self, state: Tensor) -> Tensor:
        """Map a state [H] to the hidden states [K, H] of all heads."""
        return torch.stack([self.hidden(head, state) for head in range(len(self))])

    def project(self, hidden: Tensor) -> Tensor:
        """Map hidden states [K, H], one row per head, to logits [K, V] by the heads' own projections."""
        rows = zip(self.lm_head, hidden, strict=True)
        return torch.stack([projection(row) for projection, row in rows])

    def names(self) -> dict[str, str]:
        """Return a dictionary from the published name of each weight to its name in this module."""
        names: dict[str, str] = {}
        for head, blocks in enumerate(self.blocks):
            for layer in range(len(blocks)):
                for kind in ("weight", "bias"):
                    names[f"{head}.{layer}.linear.{kind}"] = f"blocks.{head}.{layer}.{kind}"
            if self.lm_head:
                names[f"{head}.{len(blocks)}.weight"] = f"lm_head.{head}.weight"
        return names

    def fields(self):
        return {
            "architectures": ["MedusaModel"],
            "model_type": "medusa",
            "medusa_num_heads": len(self),
            "medusa_num_layers": len(self.blocks[0]),
        }


def _count(names: Mapping[str, Tensor]) -> tuple[int, int, bool]:
    """Return the number of heads, the number of blocks per head, and whether the heads have projections of their own.
    Raises ValueError if the names are not Medusa's, or for too many heads or blocks."""
    blocks = [match for name in names if (match := _BLOCK.fullmatch(name))]
    projections = [match for name in names if (match := _PROJECTION.fullmatch(name))]
    if not blocks and not projections:
        raise ValueError("its weights have other names")
    heads = 1 + max(int(match[1]) for match in (*blocks, *projections))
    layers = 1 + max((int(match[2]) for match in blocks), default=-1)
    if heads > 64 or layers > 64:
        raise ValueError("it has too many heads or layers")
    return heads, layers, bool(projections)


KIND = MedusaHeads.kind()
