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
    """Records the queries that the layers compute in passes over rows, layer by layer."""

    def __init__(self) -> None:
        self._parts: dict[int, list[Tensor]] = {}

    def __call__(self, layer: int, queries: Tensor, keys: Tensor) -> None:
        self._parts.setdefault(layer, []).append(queries[0])

    def taken(self) -> dict[int, Tensor]:
        """Returns layer -> the queries [H, R, D] of all rows recorded since the last call, and forgets them."""
        parts, self._parts = self._parts, {}
        return {layer: torch.cat(rows, 1) for layer, rows in parts.items()}


class Past:
    """A text as selectors see it. tokens: up to the root. session: the target's, which has read all of them but the
    root.

    piece: token -> its text; None if the target has no tokenizer. continuation: count -> the next ``count`` tokens by a
    draft model. draft: returns a draft model's session that has read the text; None if there is no draft model.
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
        """Layer -> the target's queries [H, R, D] of the last ``count`` tokens of the text and of the tokens ``after``
        it, and the place of the first of these tokens."""
        return self.queries_of(self.session, count, after)

    def queries_of(
        self, session: Session, count: int, after: Sequence[int] = ()
    ) -> tuple[dict[int, Tensor], int]:
        """Like ``queries``, but by the model of ``session``, which must have read the text."""
        first = max(0, min(len(self.tokens) - count, session.length))
        watch = Queries()
        read_again(session, [*self.tokens[first:], *after], first, watch)
        return watch.taken(), first


class Selector(ABC):
    """Chooses the columns that a draft pass reads, for one text. The choice changes at most once per step."""

    key: ClassVar[str]
    claim: ClassVar[str]
    """The paper's claim, in a few words."""

    needs_draft: ClassVar[bool] = False
    """Whether the selector needs a draft model."""

    follows: ClassVar[bool] = False
    """Whether ``learn`` is called with the queries of accepted tokens."""

    def __init__(self, budget: int, sinks: int) -> None:
        """budget: how many columns of each layer a draft pass reads. sinks: how many of the first tokens are always
        read."""
        self.budget, self.sinks = budget, sinks

    def begin(self, past: Past) -> None:
        """Prepare for a text whose prompt was read. The default does nothing."""

    def learn(self, queries: Mapping[int, Tensor], tokens: Sequence[int]) -> None:
        """Learn from a step. tokens: the R tokens that were drafted and accepted. queries: layer -> their queries [H,
        R, D]."""

    @abstractmethod
    def changes(self, past: Past) -> bool:
        """Whether columns must be chosen anew for the next draft. If not, it reads the last choice and the columns
        written since."""

    @abstractmethod
    def chosen(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values of a layer, each [1, Hkv, T, D] -> the keys and values that a draft pass reads, each
        [1, Hkv, C, D]."""

    @abstractmethod
    def share(self, length: int) -> float:
        """The share of the bytes of keys and values that a draft pass reads, for a text of ``length`` tokens."""


class ColumnSelector(Selector):
    """A selector that reads chosen columns unchanged. places: layer -> the columns [Hkv, C] that were last chosen."""

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
        """The columns to read of a layer with keys [Hkv, T, D], as [Hkv, C], or [C] for all heads alike. Called only if
        T exceeds the budget."""

    def share(self, length):
        return (min(self._length, self.budget) + length - self._length) / length


def attention(queries: Tensor, keys: Tensor, first: int) -> Tensor:
    """Causal attention weights of R rows over T columns, [Hkv, R * H / Hkv, T].

    queries: [H, R, D], already scaled. keys: [Hkv, T, D]. first: the place of the first row; each row sees the columns
    up to its own place.
    """
    heads, length, width = keys.shape
    rows = queries.shape[1]
    scores = (queries.reshape(heads, -1, width) @ keys.mT).float()
    places = torch.arange(first, first + rows, device=keys.device)
    later = torch.arange(length, device=keys.device) > places[:, None]
    scores.masked_fill_(later.repeat(scores.shape[1] // rows, 1), float("-inf"))
    return scores.softmax(-1)


def pooled(scores: Tensor) -> Tensor:
    """Scores [Hkv, T] -> [Hkv, T]: each score is replaced by the largest in a window of ``POOL`` columns around it."""
    return F.max_pool1d(scores[:, None], POOL, 1, POOL // 2)[:, 0]


def recent(length: int, count: int, device: torch.device) -> Tensor:
    """The numbers of the last ``count`` of ``length`` columns, [count]."""
    return torch.arange(length - count, length, device=device)


def best_and_recent(scores: Tensor, budget: int, last: int) -> Tensor:
    """The ``last`` last columns, and the best of the columns before them by scores [Hkv, T]: in total ``budget``
    columns, as [Hkv, budget] in ascending order."""
    heads, length = scores.shape
    best = scores[:, : length - last].topk(budget - last).indices
    return torch.cat([best.sort().values, recent(length, last, scores.device).expand(heads, -1)], 1)
