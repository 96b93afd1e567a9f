"""The interface of selectors: a selector chooses the keys and values of a layer that a draft pass uses.

A column of the KV cache holds the key and the value of one token. Letters in shapes: H query heads, Hkv key/value
heads, T columns, C chosen columns, R rows (new tokens), D head size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.cache_view import read_again
from engine.model.session import Session

OBSERVERS = 32  # how many last tokens of a prompt give the queries that rank keys, as in SnapKV
POOL = 7  # window over which scores are pooled, so that neighbours of a good key are chosen with it


class Queries:
    """Records the queries that each layer of a model computes in passes over rows."""

    def __init__(self) -> None:
        self._parts: dict[int, list[Tensor]] = {}

    def __call__(self, layer: int, queries: Tensor, keys: Tensor) -> None:
        self._parts.setdefault(layer, []).append(queries[0])

    def taken(self) -> dict[int, Tensor]:
        """Return a dictionary, layer -> the queries [H, R, D] of all rows recorded since the last call, and forget
        them."""
        parts, self._parts = self._parts, {}
        return {layer: torch.cat(rows, 1) for layer, rows in parts.items()}


class Past:
    """A text as selectors see it. tokens: the text up to the root. session: the target's session, which holds keys and
    values of all these tokens but the root.

    piece: a function from a token to its string; None if the target has no tokenizer. continuation: a function from a
    count to the next ``count`` tokens by a draft model. draft: a function that returns a draft model's session after a
    pass over the text; None if there is no draft model.
    """

    def __init__(
        self,
        session: Session,
        tokens: Sequence[int],
        piece: Callable[[int], str] | None,
        continuation: Callable[[int], list[int]],
        draft: Callable[[], Session] | None = None,
    ) -> None:
        self.session, self.tokens = session, tokens
        self.piece, self.continuation, self.draft = piece, continuation, draft

    def queries(self, count: int, after: Sequence[int] = ()) -> tuple[dict[int, Tensor], int]:
        """Compute the target's queries for the last ``count`` tokens of the text and for the tokens ``after`` the text.
        Returns a dictionary, layer -> queries [H, R, D], and the position of the first of these tokens."""
        return self.queries_of(self.session, count, after)

    def queries_of(
        self, session: Session, count: int, after: Sequence[int] = ()
    ) -> tuple[dict[int, Tensor], int]:
        """Like ``queries``, but for the model of ``session``, which must hold keys and values of the text."""
        first = max(0, min(len(self.tokens) - count, session.length))
        watch = Queries()
        read_again(session, [*self.tokens[first:], *after], first, watch)
        return watch.taken(), first


class Selector(ABC):
    """Chooses the columns that a draft pass uses, for one text. The choice changes at most once per step."""

    key: ClassVar[str]
    claim: ClassVar[str]
    """What the paper claims for its selector, in a few words."""

    needs_draft: ClassVar[bool] = False
    """Whether the selector needs a draft model."""

    follows: ClassVar[bool] = False
    """Whether ``learn`` must be called with the queries of accepted tokens."""

    def __init__(self, budget: int, sinks: int) -> None:
        """budget: the number of columns that a draft pass uses in each layer. sinks: the number of tokens at the
        beginning of the text whose columns are always used."""
        self.budget, self.sinks = budget, sinks

    def begin(self, past: Past) -> None:
        """Prepare for a text after the target's pass over its prompt. The default does nothing."""

    def learn(self, queries: Mapping[int, Tensor], tokens: Sequence[int]) -> None:
        """Learn from a step. tokens: the R drafted tokens that were accepted. queries: layer -> the target's queries
        [H, R, D] of these tokens."""

    @abstractmethod
    def changes(self, past: Past) -> bool:
        """Return whether columns must be chosen anew for the next draft. If not, the draft uses the last choice, and
        the columns written since then."""

    @abstractmethod
    def chosen(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Choose from all keys and values of a layer, each [1, Hkv, T, D], the keys and values that a draft pass uses,
        each [1, Hkv, C, D]."""

    @abstractmethod
    def share(self, length: int) -> float:
        """Return the bytes of keys and values that a draft pass uses, as a share of all bytes, for a text of ``length``
        tokens."""


class ColumnSelector(Selector):
    """A selector that chooses columns and does not change their numbers. places: layer -> the columns [Hkv, C] that
    were last chosen."""

    def __init__(self, budget: int, sinks: int) -> None:
        super().__init__(budget, sinks)
        self.places: dict[int, Tensor] = {}
        self._length = 0  # the text's length when columns were last chosen

    def chosen(self, layer, keys, values):
        heads, self._length = keys.shape[1], keys.shape[2]
        if self._length <= self.budget:
            at = torch.arange(self._length, device=keys.device).expand(heads, -1)
        else:
            at = self.columns(layer, keys[0]).expand(heads, -1)
        self.places[layer] = at
        index = at[None, :, :, None].expand(-1, -1, -1, keys.shape[3])
        return keys.gather(2, index), values.gather(2, index)

    @abstractmethod
    def columns(self, layer: int, keys: Tensor) -> Tensor:
        """Return the columns to use in a layer with keys [Hkv, T, D], as indices [Hkv, C], or [C] for all heads alike.
        Called only if T exceeds the budget."""

    def share(self, length):
        return (min(self._length, self.budget) + length - self._length) / length


def attention(queries: Tensor, keys: Tensor, first: int) -> Tensor:
    """Return causal attention weights of R rows on T columns, [Hkv, R * H / Hkv, T].

    queries: [H, R, D], already scaled. keys: [Hkv, T, D]. first: the position of the first row; each row attends to the
    columns up to its own position.
    """
    heads, length, width = keys.shape
    rows = queries.shape[1]
    scores = (queries.reshape(heads, -1, width) @ keys.mT).float()
    places = torch.arange(first, first + rows, device=keys.device)
    later = torch.arange(length, device=keys.device) > places[:, None]
    scores.masked_fill_(later.repeat(scores.shape[1] // rows, 1), float("-inf"))
    return scores.softmax(-1)


def pooled(scores: Tensor) -> Tensor:
    """Return scores [Hkv, T] in which each score is replaced by the largest score in a window of ``POOL`` columns
    around it."""
    return F.max_pool1d(scores[:, None], POOL, 1, POOL // 2)[:, 0]


def recent(length: int, count: int, device: torch.device) -> Tensor:
    """Return the indices of the last ``count`` of ``length`` columns, [count]."""
    return torch.arange(length - count, length, device=device)


def best_and_recent(scores: Tensor, budget: int, last: int) -> Tensor:
    """Return the indices of ``budget`` columns, [Hkv, budget], in ascending order: the last ``last`` columns, and those
    of the columns before them with the highest scores. scores: [Hkv, T]."""
    heads, length = scores.shape
    best = scores[:, : length - last].topk(budget - last).indices
    return torch.cat([best.sort().values, recent(length, last, scores.device).expand(heads, -1)], 1)
