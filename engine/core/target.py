"""Interfaces to models: a target, and a session in which it reads one text. ``engine.model`` implements both.

To read tokens is to run the model over them. A row is one token position in such a pass.

Letters in shapes: N rows, V vocabulary, n requested layers, H hidden size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.core.seen import Draft, Seen


class Session(Protocol):
    """The part of one text that a model has in its KV cache: committed tokens, and after them rows of a tree. See
    ``engine.model.session.Session``.

    length: the number of committed tokens. rows: the number of tokens that were read but not committed. features: the
    layers whose hidden states are requested. postponed: the number of prompt tokens that the first ``look`` will read.
    reads_parts: whether a prompt may be split over several calls of ``prefill`` without a change of the results.
    """

    features: tuple[int, ...]
    length: int
    rows: int
    postponed: int
    reads_parts: bool

    def prefill(
        self,
        tokens: Sequence[int],
        layers: tuple[int, ...] | None = None,
        last: int | None = None,
        later: bool = False,
    ) -> Tensor | None:
        """Read and commit these tokens. Returns features [T, n*H] of the last T = ``last`` tokens (all tokens if
        ``last`` is None), or None if no layers are requested. later: whether the tokens may be left for the first
        ``look`` to read."""

    def take_over(self, other: Session, length: int) -> None:
        """Copy the first ``length`` tokens from another session of the same model."""

    def look(self, draft: Draft) -> Seen:
        """Read the root and a tree in one pass."""

    def feed(self, tokens: Sequence[int], parents: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Read rows of a tree. Returns logits [N, V], and features [N, n*H] or None."""

    def extend(self, tokens: Sequence[int]) -> Tensor:
        """Read and commit a chain. Returns the logits [V] after its last token."""

    def commit(self, rows: Sequence[int]) -> None:
        """Keep these rows as the next tokens of the text, and drop the others."""

    def drop(self) -> None:
        """Drop all rows that are not committed."""


class Target(Protocol):
    """A language model that decides the text. ``engine.model.language_model.LanguageModel`` implements it.

    max_context: the longest text in tokens. end_tokens: tokens that end a text.
    """

    name: str
    device: torch.device
    max_context: int
    end_tokens: frozenset[int]

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        """A new session. capacity: columns of the KV cache to begin with. features: layers whose states are
        requested."""


class Models(Protocol):
    """The models of a run. ``engine.parts.loading.Models`` implements it. parts: the models and trained modules that
    the drafter uses beside the target, each under its role in the drafter. folders: the folder that each of them was
    loaded from, by role."""

    target: Target
    parts: Mapping[str, object]
    folders: Mapping[str, str]

    def part(self, role: str) -> object:
        """The model or trained module with this role. Raises KeyError if the drafter did not declare the role."""


def of_layers(features: Tensor | None, read: Iterable[int], wanted: Sequence[int]) -> Tensor | None:
    """Select layers: features [..., n*H] of the layers ``read`` -> features of the layers ``wanted``, a subset of
    ``read``. Returns None if ``wanted`` is empty."""
    read = tuple(read)
    if not wanted or read == tuple(wanted):
        return features if wanted else None
    parts = features.chunk(len(read), -1)
    return torch.cat([parts[read.index(layer)] for layer in wanted], -1)
