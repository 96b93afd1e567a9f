"""Prompt tokens: trained vectors in place of embeddings, at which a frozen target predicts later tokens.

Chen et al., "Hardware-Aware Parallel Prompt Decoding for Memory-Efficient Acceleration of LLM Inference" (2024):
K prompt tokens stand behind a token, and the i-th of them gives the law of the token i + 1 places after that token; the
target's own row gives the law of the next token. Each prompt token may be an ensemble of E vectors, whose logits are
averaged; member j sees member j of the prompt tokens before it. A published checkpoint holds ``prompt_embeddings``
[K*E, H], place by place, and an ``adapter_config.json`` with K and E.

Letters in shapes: K places, E members, H hidden size, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.core.seen import MOST_PROBES, Probes
from engine.parts.files import CONFIG, WEIGHTS
from engine.parts.module_part import ModulePart

TENSOR = "prompt_embeddings"
PLACES, MEMBERS = "num_special_tokens", "virtual_tokens_per_special_token"


class PromptTokens(ModulePart):
    """A set of prompt tokens. prompt_embeddings: [K*E, H], the E members of each place side by side."""

    key, noun = "prompt_tokens", "set of prompt tokens"
    files = ("adapter_model.safetensors", WEIGHTS)
    configs = ("adapter_config.json", CONFIG)

    def __init__(self, places: int, members: int, width: int) -> None:
        super().__init__()
        self.members = members
        self.prompt_embeddings = nn.Parameter(torch.zeros(places * members, width))

    @classmethod
    def of_files(cls, config, tensors, target):
        (rows,) = tensors.values()
        shape, width = list(rows.shape), target.hidden_size
        if rows.dim() != 2 or shape[1] != width or not len(rows):
            raise ValueError(f"{TENSOR} has the shape {shape}, where [rows, {width}] is needed")
        if len(rows) > MOST_PROBES:
            raise ValueError(f"it has {len(rows):,} rows, where at most {MOST_PROBES} are allowed")
        members = config.get(MEMBERS, 1)
        fits = isinstance(members, int) and not isinstance(members, bool) and members > 0
        if not fits or len(rows) % members:
            raise ValueError(f"{len(rows)} rows do not divide into places of {members!r} each")
        return cls(len(rows) // members, members, width)

    @classmethod
    def tensors_of(cls, config, tensors):
        if set(tensors) != {TENSOR}:
            raise ValueError(f"it must hold the tensor {TENSOR} and no other")
        return tensors

    def fields(self):
        return {"peft_type": "PROMPT_TUNING", PLACES: self.places, MEMBERS: self.members}

    @classmethod
    def tiny(cls, target, opener=None):
        """Two places of two vectors each. The vectors are embeddings of tokens, so that they have an effect."""
        part = cls(2, 2, target.hidden_size)
        part.rows.data.copy_(target.embed(torch.arange(4) % target.embeddings))
        return part.eval().requires_grad_(False)

    @property
    def embeddings(self) -> Tensor:
        """The vectors by place and member, [K, E, H]."""
        return self.rows.unflatten(0, (self.places, self.members))

    @property
    def places(self) -> int:
        return len(self.rows) // self.members

    def __len__(self) -> int:
        """The number of rows behind a node, K*E."""
        return self.places * self.members

    @property
    def rows(self) -> Tensor:
        """The vectors, [K*E, H], place by place."""
        return self.prompt_embeddings

    def seen(self, row: int) -> int | None:
        """The last earlier row that a row sees: the same member of the place before. None at the first place."""
        return row - self.members if row >= self.members else None

    def probes(self, nodes: Sequence[int], size: int) -> Probes:
        """The probe rows behind each of these nodes of a tree of ``size`` nodes, node by node."""
        parents = []
        for node in nodes:
            first = size + len(parents)
            parents += [
                node if (seen := self.seen(row)) is None else first + seen
                for row in range(len(self))
            ]
        return Probes.embedded(self.rows.repeat(len(nodes), 1), parents)

    def rows_behind(self, index: int, asked: int) -> range:
        """The numbers of the probe rows behind the index-th of the ``asked`` nodes."""
        return range(index * len(self), (index + 1) * len(self))

    def logits(self, rows: Tensor) -> Tensor:
        """The target's logits at the rows [..., K*E, V] -> logits of the places [..., K, V], averaged over the
        members."""
        return rows.unflatten(-2, (self.places, self.members)).mean(-2)


KIND = PromptTokens.kind()
