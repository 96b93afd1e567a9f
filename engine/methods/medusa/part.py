"""Medusa heads: each predicts one later token from the target's last hidden state.

Cai et al., Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads (2024). Head k (from 0)
reads the state after the final norm that gave the token at t + 1 and predicts the token at t + 2 + k: residual blocks
x + SiLU(linear(x)), then a projection to the vocabulary.

The layout of the published checkpoints: ``{head}.{layer}.linear.{weight,bias}`` and, after the L blocks of a head, its
projection ``{head}.{L}.weight``; the prefix ``medusa_head.`` may stand before all of them. A checkpoint without
projections shares the target's head. The names give the numbers of heads and blocks; the config's numbers are ignored.

Letters in shapes: K heads, L blocks of each, H hidden size, V vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import UserError
from engine.methods.shared.head_ranks import Accuracies, accuracies_of, usual
from engine.model.language_model import LanguageModel
from engine.parts.files import WEIGHTS, load_published, read_config, read_tensors, write_part
from engine.parts.kinds import PartKind

FILES = ("medusa_lm_head.safetensors", WEIGHTS)
PREFIX = "medusa_head."
NOUN = "set of Medusa heads"
_BLOCK = re.compile(r"(\d{1,3})\.(\d{1,3})\.linear\.(weight|bias)")
_PROJECTION = re.compile(r"(\d{1,3})\.(\d{1,3})\.weight")


class MedusaHeads(nn.Module):
    """accuracies: by head and rank, see ``head_ranks``."""

    def __init__(self, heads: int, layers: int, width: int, vocabulary: int | None) -> None:
        """vocabulary: of the heads' own projections; None: they share the target's head."""
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Linear(width, width) for _ in range(layers)) for _ in range(heads)
        )
        self.lm_head = nn.ModuleList(
            nn.Linear(width, vocabulary, bias=False)
            for _ in range(0 if vocabulary is None else heads)
        )
        self.accuracies: Accuracies = usual(heads)

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def shares_head(self) -> bool:
        """Whether the target's head gives the logits."""
        return not self.lm_head

    def hidden(self, head: int, state: Tensor) -> Tensor:
        """A head's hidden states, before the projection, for states [..., H]."""
        for block in self.blocks[head]:
            state = state + F.silu(block(state))
        return state

    def forward(self, state: Tensor) -> Tensor:
        """One state [H] -> the hidden states [K, H] of all heads"""
        return torch.stack([self.hidden(head, state) for head in range(len(self))])

    def project(self, hidden: Tensor) -> Tensor:
        """One row per head [K, H] -> logits [K, V], if the heads have projections of their own."""
        rows = zip(self.lm_head, hidden, strict=True)
        return torch.stack([projection(row) for projection, row in rows])

    def names(self) -> dict[str, str]:
        """Published name of each weight -> its name in this module."""
        found: dict[str, str] = {}
        for head, blocks in enumerate(self.blocks):
            for layer in range(len(blocks)):
                for kind in ("weight", "bias"):
                    found[f"{head}.{layer}.linear.{kind}"] = f"blocks.{head}.{layer}.{kind}"
            if self.lm_head:
                found[f"{head}.{len(blocks)}.weight"] = f"lm_head.{head}.weight"
        return found

    def save(self, folder: Path, about: Mapping) -> None:
        """about: fields of the config besides those of published checkpoints."""
        config = {
            "architectures": ["MedusaModel"],
            "model_type": "medusa",
            "medusa_num_heads": len(self),
            "medusa_num_layers": len(self.blocks[0]),
        }
        weights = self.state_dict()
        tensors = {name: weights[own] for name, own in self.names().items()}
        write_part(folder, tensors, config | dict(about))


def from_published(tensors: Mapping[str, Tensor], width: int, vocabulary: int) -> MedusaHeads:
    """Heads from tensors under the published names, for a target of this width and vocabulary.

    Raises ValueError, whose message ends a sentence, if they are not Medusa's or do not fit.
    """
    tensors = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
    heads, layers, projections = _count(tensors)
    with torch.device("meta"):
        made = MedusaHeads(heads, layers, width, vocabulary if projections else None)
    load_published(made, made.names(), tensors)
    return made


def _count(names: Mapping[str, Tensor]) -> tuple[int, int, bool]:
    """Heads, blocks of each, and whether they have projections of their own."""
    blocks = [found for name in names if (found := _BLOCK.fullmatch(name))]
    projections = [found for name in names if (found := _PROJECTION.fullmatch(name))]
    if not blocks and not projections:
        raise ValueError("its weights have other names")
    heads = 1 + max(int(found[1]) for found in (*blocks, *projections))
    layers = 1 + max((int(found[2]) for found in blocks), default=-1)
    if heads > 64 or layers > 64:
        raise ValueError("it has too many heads or layers")
    return heads, layers, bool(projections)


def _load(path: str, target: LanguageModel, dtype, device: str) -> MedusaHeads:
    folder = Path(path)
    config, tensors = read_config(folder), read_tensors(folder, NOUN, FILES)
    try:
        heads = from_published(tensors, target.hidden_size, target.vocab_size)
    except ValueError as error:
        raise UserError(
            f"{folder.name} holds no Medusa heads for {target.name}: {error}."
        ) from None
    heads.accuracies = accuracies_of(config, len(heads), folder.name)
    return heads.to(device=device, dtype=target.dtype).eval().requires_grad_(False)


KIND = PartKind("medusa_heads", NOUN, _load)
