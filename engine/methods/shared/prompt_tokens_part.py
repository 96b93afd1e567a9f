"""Prompt tokens: trained vectors in place of embeddings, at which a frozen target predicts later tokens.

Chen et al., "Hardware-Aware Parallel Prompt Decoding for Memory-Efficient Acceleration of LLM Inference" (2024). K
prompt tokens are put after a token. The target's own row for this token gives the distribution of the next token, and
the i-th prompt token gives that of the token i + 1 positions after this token. Each prompt token may be an ensemble of
E vectors, its members, whose logits are averaged. Member j attends to member j of each earlier prompt token, but to no
other member. A published checkpoint holds ``prompt_embeddings`` [K*E, H], one prompt token after another, and an
``adapter_config.json`` with K and E.

Letters in shapes: K prompt tokens, E members of each, H hidden size, V vocabulary.
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
    """A set of prompt tokens. prompt_embeddings: [K*E, H], in which the E members of a prompt token are adjacent."""

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
        """Return two prompt tokens of two members each. The vectors are embeddings of real tokens, so that they change
        the logits."""
        part = cls(2, 2, target.hidden_size)
        part.rows.data.copy_(target.embed(torch.arange(4) % target.embeddings))
        return part.eval().requires_grad_(False)

    @property
    def embeddings(self) -> Tensor:
        """The vectors by prompt token and member, [K, E, H]."""
        return self.rows.unflatten(0, (self.places, self.members))

    @property
    def places(self) -> int:
        return len(self.rows) // self.members

    def __len__(self) -> int:
        """The number of probe rows after a node of the tree, K*E."""
        return self.places * self.members

    @property
    def rows(self) -> Tensor:
        """The vectors, [K*E, H], one prompt token after another."""
        return self.prompt_embeddings

    def seen(self, row: int) -> int | None:
        """Return the last earlier probe row to which a row attends: the same member of the prompt token before. Returns
        None for the first prompt token."""
        return row - self.members if row >= self.members else None

    def probes(self, nodes: Sequence[int], size: int) -> Probes:
        """Return the probe rows after each of these nodes of a tree of ``size`` nodes, one node after another."""
        parents = []
        for node in nodes:
            first = size + len(parents)
            parents += [
                node if (seen := self.seen(row)) is None else first + seen
                for row in range(len(self))
            ]
        return Probes.embedded(self.rows.repeat(len(nodes), 1), parents)

    def rows_behind(self, index: int, asked: int) -> range:
        """Return the indices of the probe rows that belong to the index-th of the ``asked`` nodes."""
        return range(index * len(self), (index + 1) * len(self))

    def logits(self, rows: Tensor) -> Tensor:
        """Average the target's logits over the members: logits at the probe rows [..., K*E, V] -> [..., K, V], one row
        for each prompt token."""
        return rows.unflatten(-2, (self.places, self.members)).mean(-2)


KIND = PromptTokens.kind()
