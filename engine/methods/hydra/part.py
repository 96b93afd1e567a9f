"""Hydra heads: each predicts one later token from the target's last hidden state and the tokens drafted before it.

Ankner et al., Hydra: Sequentially-Dependent Draft Heads for Medusa Decoding (2024). Head k (from 0) reads the state
that predicted the token at t + 1 and, next to it, the target's embeddings of the tokens at t + 1 ... t + 1 + k. It
predicts the token at t + 2 + k. Its first block is linear(x) with a linear residual connection, because its input is k
+ 2 times as wide as its output; the other blocks are Medusa's. In Hydra++ a *prefix*, one layer of the target's kind,
runs over all states first, and the heads get its outputs.

The layout of the published checkpoints: ``hydra_mlp.{head}.{layer}.linear.{weight,bias}``,
``hydra_mlp.{head}.0.res_connection.{weight,bias}``, ``hydra_lm_head.{head}.{weight,bias}``. With a prefix there are
also ``prefix_embeding_layer.{layers.0.*,norm.weight}``; then dropout layers count, so blocks have the numbers 1, 3, 5
... and a projection is ``hydra_lm_head.{head}.1.*``. Embeddings in the file are the target's and are ignored. A
checkpoint without projections shares the target's head. In the authors' code, all blocks of a head after the first
share their weights. A file without duplicates holds these weights once, and the config's ``hydra_num_layers`` is the
number of blocks.

Letters in shapes: K heads, L blocks of a head, H hidden size, V vocabulary, R rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import Cache, PreTrainedConfig, PreTrainedModel

from engine.errors import UserError
from engine.methods.shared.attention_layer import decoder_like
from engine.methods.shared.head_ranks import HeadsPart
from engine.parts.files import WEIGHTS

PREFIX = "prefix_embeding_layer."  # spelled so in the checkpoints
OFFSET, LAYERS = "hidden_state_offset", "hydra_num_layers"
MOST = 64  # most heads, and most blocks of a head
_BLOCK = re.compile(r"hydra_mlp\.(\d{1,3})\.(\d{1,3})\.(linear|res_connection)\.(weight|bias)")
_PROJECTION = re.compile(r"hydra_lm_head\.(\d{1,3})\.(?:1\.)?(weight|bias)")
_BORROWED = ("input_embed_fn.weight", f"{PREFIX}embed_tokens.weight")


class Block(nn.Module):
    """SiLU(linear(x)), added to x, or to a linear map of x if x is wider than H."""

    def __init__(self, width: int, conditions: int = 0) -> None:
        """width: H. conditions: how many tokens' embeddings x holds beside the state; x has (conditions + 1) * H
        entries."""
        super().__init__()
        wide = width * (conditions + 1)
        self.linear = nn.Linear(wide, width)
        self.res_connection = nn.Linear(wide, width) if conditions else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.res_connection(x) + F.silu(self.linear(x))


class HydraHeads(HeadsPart):
    """The weights of Hydra heads. offset: how many layers before the target's last layer the states are taken."""

    key, noun = "hydra_heads", "set of Hydra heads"
    files = ("hydra_lm_head.safetensors", WEIGHTS)
    offset = 0

    def __init__(
        self,
        heads: int,
        layers: int,
        width: int,
        vocabulary: int | None,
        prefix: PreTrainedConfig | None = None,
    ) -> None:
        """vocabulary: the size of the heads' own projections; None if they share the target's head. prefix: the
        target's config to have a prefix layer before the heads; None to have none."""
        super().__init__(heads)
        self.blocks = nn.ModuleList(
            nn.ModuleList(Block(width, head + 1 if layer == 0 else 0) for layer in range(layers))
            for head in range(heads)
        )
        own = 0 if vocabulary is None else heads
        self.lm_head = nn.ModuleList(nn.Linear(width, vocabulary) for _ in range(own))
        self.prefix = None if prefix is None else decoder_like(prefix, 1)

    @classmethod
    def of_files(cls, config, tensors, target):
        layout = Layout.of(tensors)
        return cls(
            layout.heads,
            max(layout.promised(config), len(layout.numbers)),
            target.hidden_size,
            target.vocab_size if layout.projections else None,
            target.model.config.get_text_config(decoder=True) if layout.prefix else None,
        )

    @classmethod
    def tensors_of(cls, config, tensors):
        tensors = {name: tensor for name, tensor in tensors.items() if name not in _BORROWED}
        layout = Layout.of(tensors)
        promised = layout.promised(config)
        return layout.repeated(tensors, promised) if promised > len(layout.numbers) else tensors

    def settle(self, config, target, folder):
        super().settle(config, target, folder)
        self.offset = config.get(OFFSET) or 0
        if not isinstance(self.offset, int) or not 0 <= self.offset <= target.layers:
            raise UserError(
                f"The configuration of {folder} asks for layers that {target.name} lacks."
            )

    @classmethod
    def tiny(cls, target, opener=None, layers=2, prefix=True, **options):
        """Return small heads with several blocks each. As in Hydra++, a prefix layer of attention computes their
        input."""
        return super().tiny(target, opener, layers=layers, prefix=prefix, **options)

    @classmethod
    @torch.no_grad()
    def beginning(
        cls,
        target: PreTrainedModel,
        heads: int = 2,
        layers: int = 1,
        shared: bool = False,
        prefix: bool = False,
    ) -> HydraHeads:
        """Return untrained heads: those of Medusa, with zero weights for the embeddings. prefix: whether the heads have
        a prefix layer before them."""
        head = target.get_output_embeddings().weight
        width = head.shape[1]
        config = target.config.get_text_config(decoder=True) if prefix else None
        part = cls(heads, layers, width, None if shared else len(head), config)
        for weight in part.blocks.parameters():
            weight.zero_()
        for blocks in part.blocks:
            blocks[0].res_connection.weight[:, :width] = torch.eye(width)
        for projection in part.lm_head:
            projection.weight.copy_(head)
            projection.bias.zero_()
        return part

    @property
    def shares_head(self) -> bool:
        """Whether the target's head gives the logits."""
        return not self.lm_head

    def states(self, features: Tensor, cache: Cache | None = None) -> Tensor:
        """Map the target's states [S, R, H] to the inputs of the heads: the output of the prefix layer, or, if the
        heads have no prefix layer, the states unchanged.

        cache: the keys and values of earlier states in the prefix layer; those of the new states are added.
        """
        if self.prefix is None:
            return features
        return self.prefix(
            inputs_embeds=features, past_key_values=cache, use_cache=cache is not None
        ).last_hidden_state

    def hidden(self, head: int, state: Tensor, embeddings: Tensor) -> Tensor:
        """Return a head's output [..., H] before the projection. state: [..., H]. embeddings: [..., head + 1, H], of
        the tokens after the state."""
        rows = torch.cat([state, embeddings.flatten(-2)], -1)
        for block in self.blocks[head]:
            rows = block(rows)
        return rows

    def names(self) -> dict[str, str]:
        """Return a dictionary from the published name of each weight to its name in this module."""
        start, step = _numbering(self.prefix is not None)
        names: dict[str, str] = {}
        for own in self.state_dict():
            kind, _, rest = own.partition(".")
            if kind == "prefix":
                names[PREFIX + rest] = own
            elif kind == "lm_head":
                head, _, leaf = rest.partition(".")
                names[f"hydra_lm_head.{head}.{'1.' if start else ''}{leaf}"] = own
            else:
                head, layer, leaf = rest.split(".", 2)
                names[f"hydra_mlp.{head}.{start + step * int(layer)}.{leaf}"] = own
        return names

    def fields(self):
        return {
            "architectures": ["HydraModel"],
            "model_type": "hydra",
            "hydra_num_heads": len(self),
            LAYERS: len(self.blocks[0]),
            "hydra_head_arch": "mlp" if self.prefix is None else "prefix-mlp",
            "grounded_heads": True,
            OFFSET: self.offset,
        }


def _numbering(prefix: bool) -> tuple[int, int]:
    """Return two numbers: that of a head's first block in published names, and the difference between the numbers of
    two successive blocks."""
    return (1, 2) if prefix else (0, 1)


class Layout(NamedTuple):
    """The structure that the published tensor names imply. heads: the number of heads. numbers: the numbers that the
    names give to the blocks of a head. projections: whether the heads have their own projections. prefix: whether there
    is a prefix layer before the heads."""

    heads: int
    numbers: list[int]
    projections: bool
    prefix: bool

    @classmethod
    def of(cls, names: Mapping[str, Tensor]) -> Layout:
        """Return the layout of a file with these tensor names. Raises ValueError if they are not Hydra's; its message
        is the end of a sentence that the caller begins."""
        blocks = [match for name in names if (match := _BLOCK.fullmatch(name))]
        projections = [match for name in names if (match := _PROJECTION.fullmatch(name))]
        if not blocks:
            raise ValueError("its weights have other names")
        heads = 1 + max(int(match[1]) for match in (*blocks, *projections))
        numbers = sorted({int(match[2]) for match in blocks})
        prefix = any(name.startswith(PREFIX) for name in names)
        return cls(heads, numbers, bool(projections), prefix)

    def promised(self, config: Mapping) -> int:
        """Return the number of blocks of a head that the config states; 0 if it states none. Raises ValueError for too
        many heads or blocks."""
        promised = config.get(LAYERS)
        promised = promised if isinstance(promised, int) else 0
        if max(self.heads, len(self.numbers), promised) > MOST:
            raise ValueError("it has too many heads or layers")
        return promised

    def repeated(self, tensors: Mapping[str, Tensor], promised: int) -> dict[str, Tensor]:
        """Return the tensors, with a copy of each head's second block for all later blocks. promised: the number of
        blocks of a head. Raises ValueError unless the file holds exactly two blocks of each head."""
        if len(self.numbers) != 2:
            raise ValueError(
                f"its heads have {len(self.numbers)} blocks, where its configuration promises {promised}"
            )
        copies = dict(tensors)
        start, step = _numbering(self.prefix)
        for name, tensor in tensors.items():
            block = _BLOCK.fullmatch(name)
            if block is not None and int(block[2]) == self.numbers[1]:
                for layer in range(1, promised):
                    number = start + step * layer
                    copies.setdefault(
                        f"hydra_mlp.{block[1]}.{number}.{block[3]}.{block[4]}", tensor.clone()
                    )
        return copies


KIND = HydraHeads.kind()
