"""Prompt tokens: trained vectors in place of embeddings, at which a frozen target predicts later tokens.

Chen et al., "Hardware-Aware Parallel Prompt Decoding for Memory-Efficient Acceleration of LLM Inference" (2024):
K prompt tokens follow a token, and the i-th of them gives the law of the token i + 1 places after that token, beyond
the target's own law of the next one. Each may be an ensemble of E vectors, whose logits are averaged; member j sees the
members j before it. The layout of the published checkpoints: ``prompt_embeddings`` [K*E, H], place by place, and an
``adapter_config.json`` that says how many of each.

Letters in shapes: K places, E members, H hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.core.seen import MOST_PROBES, Probes
from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.files import WEIGHTS, needed_config, read_config, read_tensors, write_part
from engine.parts.kinds import Opener, PartKind

NOUN = "set of prompt tokens"
FILES = ("adapter_model.safetensors", WEIGHTS)
PUBLISHED_CONFIG = "adapter_config.json"
TENSOR = "prompt_embeddings"
PLACES, MEMBERS = "num_special_tokens", "virtual_tokens_per_special_token"


class PromptTokens(nn.Module):
    """embeddings: [K, E, H]"""

    def __init__(self, places: int, members: int, width: int) -> None:
        super().__init__()
        self.embeddings = nn.Parameter(torch.zeros(places, members, width))

    @property
    def places(self) -> int:
        return self.embeddings.shape[0]

    @property
    def members(self) -> int:
        return self.embeddings.shape[1]

    def __len__(self) -> int:
        """The number of rows that they take."""
        return self.places * self.members

    @property
    def rows(self) -> Tensor:
        """[K*E, H], place by place"""
        return self.embeddings.flatten(0, 1)

    def seen(self, row: int) -> int | None:
        """The last of the other rows that a row sees; None if it sees none of them."""
        return row - self.members if row >= self.members else None

    def probes(self, nodes: Sequence[int], size: int) -> Probes:
        """The probes after each of these nodes of a tree of ``size`` nodes, node by node."""
        parents = []
        for node in nodes:
            first = size + len(parents)
            parents += [
                node if (seen := self.seen(row)) is None else first + seen
                for row in range(len(self))
            ]
        return Probes.embedded(self.rows.repeat(len(nodes), 1), parents)

    def rows_behind(self, index: int, asked: int) -> range:
        """The rows of the probes after the index-th of the ``asked`` nodes."""
        return range(index * len(self), (index + 1) * len(self))

    def logits(self, rows: Tensor) -> Tensor:
        """The target's logits at the rows, [..., K*E, V] -> [..., K, V], averaged over the members"""
        return rows.unflatten(-2, (self.places, self.members)).mean(-2)

    def save(self, folder: Path, about: Mapping) -> None:
        """about: further fields of the config."""
        own = {"peft_type": "PROMPT_TUNING", PLACES: self.places, MEMBERS: self.members}
        write_part(folder, {TENSOR: self.rows}, own | dict(about))


def _load(path: str, target: LanguageModel, dtype, device: str) -> PromptTokens:
    folder = Path(path)
    config, tensors = _config(folder), read_tensors(folder, NOUN, FILES)
    try:
        found = _from_published(config, tensors, target.hidden_size)
    except ValueError as error:
        raise UserError(f"{folder.name} holds no {NOUN} for {target.name}: {error}.") from None
    return found.to(device=device, dtype=target.dtype).requires_grad_(False)


def _config(folder: Path) -> dict:
    if not (folder / PUBLISHED_CONFIG).is_file():
        return read_config(folder)
    return needed_config(folder, PUBLISHED_CONFIG)


def _from_published(config: Mapping, tensors: Mapping[str, Tensor], width: int) -> PromptTokens:
    if set(tensors) != {TENSOR}:
        raise ValueError(f"it must hold the tensor {TENSOR} and no other")
    rows = tensors[TENSOR]
    if rows.dim() != 2 or rows.shape[1] != width or not len(rows):
        raise ValueError(
            f"{TENSOR} has the shape {list(rows.shape)}, where [rows, {width}] is needed"
        )
    if len(rows) > MOST_PROBES:
        raise ValueError(f"it has {len(rows):,} rows, where at most {MOST_PROBES} are allowed")
    members = config.get(MEMBERS, 1)
    fits = isinstance(members, int) and not isinstance(members, bool) and members > 0
    if not fits or len(rows) % members:
        raise ValueError(f"{len(rows)} rows do not divide into places of {members!r} each")
    made = PromptTokens(len(rows) // members, members, width)
    made.embeddings.data.copy_(rows.view_as(made.embeddings))
    return made


def tiny_prompt_tokens(target: LanguageModel, opener: Opener | None = None) -> PromptTokens:
    """Two places of two vectors each, which are embeddings of tokens, so that they have an effect."""
    made = PromptTokens(2, 2, target.hidden_size)
    tokens = torch.arange(4) % target.embeddings
    made.embeddings.data.copy_(target.embed(tokens).view_as(made.embeddings))
    return made.requires_grad_(False)


KIND = PartKind("prompt_tokens", NOUN, _load, tiny_prompt_tokens)
