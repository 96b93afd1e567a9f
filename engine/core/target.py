"""The core's view of models: the interface of a target and of a session in which it reads one text.

``engine.model`` implements both. Letters in shapes: N rows, V vocabulary, n layers asked for, H hidden size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.core.seen import Draft, Seen


class Session(Protocol):
    """One text, as far as a model has read it, and rows of a tree beyond it. ``engine.model.session.Session``.

    length: tokens committed. rows: tokens read beyond them. features: layers whose states are asked for. postponed:
    tokens of the prompt that the first look at a draft will read. reads_parts: whether several calls of ``prefill`` read a
    prompt as one call does.
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
        """Read and commit these tokens; returns features [T, n*H] of the ``last`` ones, or None. later: the first look may
        read them as well."""

    def take_over(self, other: Session, length: int) -> None:
        """Copy the first ``length`` tokens of another session of the same model."""

    def look(self, draft: Draft) -> Seen:
        """Read the root and a tree in one pass."""

    def feed(self, tokens: Sequence[int], parents: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Read rows of a tree; returns logits [N, V], and features [N, n*H] or None."""

    def extend(self, tokens: Sequence[int]) -> Tensor:
        """Read and commit a chain; returns the logits [V] after it."""

    def commit(self, rows: Sequence[int]) -> None:
        """Keep these rows as the next tokens, and forget the others."""

    def drop(self) -> None:
        """Forget all rows."""


class Target(Protocol):
    """A language model whose text is written. ``engine.model.language_model.LanguageModel``.

    max_context: the longest text in tokens. end_tokens: those that end a text.
    """

    name: str
    device: torch.device
    max_context: int
    end_tokens: frozenset[int]

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        """A fresh session. capacity: columns to begin with. features: layers whose states are wanted."""


class Models(Protocol):
    """The models of a run. ``engine.parts.loading.Models``. parts: by role; folders: where they were opened."""

    target: Target
    parts: Mapping[str, object]
    folders: Mapping[str, str]

    def part(self, role: str) -> object:
        """Raises KeyError if the drafter did not declare the role."""


def of_layers(features: Tensor | None, read: Iterable[int], wanted: Sequence[int]) -> Tensor | None:
    """features [..., n*H] of the layers ``read`` -> those of ``wanted``, a subset; None if that is empty."""
    read = tuple(read)
    if not wanted or read == tuple(wanted):
        return features if wanted else None
    parts = features.chunk(len(read), -1)
    return torch.cat([parts[read.index(layer)] for layer in wanted], -1)
