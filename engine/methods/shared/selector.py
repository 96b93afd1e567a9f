"""The interface of selectors: a selector chooses the keys and values of a layer that a draft pass reads.

Letters in shapes: H query heads, Hkv heads of keys, T columns, C columns that are read, R rows, D head size.
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

OBSERVERS = 32  # last tokens of a prompt whose queries tell which keys matter, as in SnapKV
POOL = 7  # a key's neighbours on both sides are kept with it


class Queries:
    """The queries of rows, by layer, as the layers' passes come by."""

    def __init__(self) -> None:
        self._parts: dict[int, list[Tensor]] = {}

    def __call__(self, layer: int, queries: Tensor, keys: Tensor) -> None:
        self._parts.setdefault(layer, []).append(queries[0])

    def taken(self) -> dict[int, Tensor]:
        """Layer -> the queries of all rows since the last call, [H, R, D]."""
        parts, self._parts = self._parts, {}
        return {layer: torch.cat(rows, 1) for layer, rows in parts.items()}


class Past:
    """The text as selectors see it: tokens up to the root, and the session that has read all but the last.

    piece: the text of a token, or None where the target has no tokenizer. continuation: so many tokens that a draft model
    writes behind the text. draft: a draft model's session that has read the text.
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
        """The queries of the last ``count`` tokens and of those that might come after, and the place of the first."""
        return self.queries_of(self.session, count, after)

    def queries_of(
        self, session: Session, count: int, after: Sequence[int] = ()
    ) -> tuple[dict[int, Tensor], int]:
        """Like ``queries``, in a session of any model that has read the text."""
        first = max(0, min(len(self.tokens) - count, session.length))
        watch = Queries()
        read_again(session, [*self.tokens[first:], *after], first, watch)
        return watch.taken(), first


class Selector(ABC):
    """The choice of columns for one text. The choice changes at most once a step."""

    key: ClassVar[str]
    claim: ClassVar[str]
    """What the paper says about it, in a few words."""

    needs_draft: ClassVar[bool] = False
    """Whether a draft model must be there."""

    follows: ClassVar[bool] = False
    """Whether it wants to be told the queries of the tokens that are written."""

    def __init__(self, budget: int, sinks: int) -> None:
        """budget: columns of each layer that a draft pass reads. sinks: first tokens that are always read."""
        self.budget, self.sinks = budget, sinks

    def begin(self, past: Past) -> None:
        """Look at the prompt."""

    def learn(self, queries: Mapping[int, Tensor], tokens: Sequence[int]) -> None:
        """Learn from a step. queries: layer -> the queries [H, R, D] of the R tokens that were drafted and kept."""

    @abstractmethod
    def changes(self, past: Past) -> bool:
        """Whether the next draft reads something else than the last one and the columns written since."""

    @abstractmethod
    def chosen(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [1, Hkv, T, D] -> those that a draft pass reads, [1, Hkv, C, D]."""

    @abstractmethod
    def share(self, length: int) -> float:
        """The bytes that a draft pass reads of the keys and values of ``length`` tokens, as a share of all."""


class ColumnSelector(Selector):
    """Chooses columns. places: by layer, the columns [Hkv, C] that were last chosen."""

    def __init__(self, budget: int, sinks: int) -> None:
        super().__init__(budget, sinks)
        self.places: dict[int, Tensor] = {}
        self._length = 0  # of the text when columns were last chosen

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
        """keys [Hkv, T, D], of more columns than the budget -> the columns to read, [Hkv, C] or [C]."""

    def share(self, length):
        return (min(self._length, self.budget) + length - self._length) / length


def attention(queries: Tensor, keys: Tensor, first: int) -> Tensor:
    """The weights [Hkv, R * H / Hkv, T] that rows, the first at place ``first``, give to the columns up to themselves.

    queries: [H, R, D], scaled. keys: [Hkv, T, D].
    """
    heads, length, width = keys.shape
    rows = queries.shape[1]
    scores = (queries.reshape(heads, -1, width) @ keys.mT).float()
    places = torch.arange(first, first + rows, device=keys.device)
    later = torch.arange(length, device=keys.device) > places[:, None]
    scores.masked_fill_(later.repeat(scores.shape[1] // rows, 1), float("-inf"))
    return scores.softmax(-1)


def pooled(scores: Tensor) -> Tensor:
    """[Hkv, T]: each score raised to the largest of its neighbours'."""
    return F.max_pool1d(scores[:, None], POOL, 1, POOL // 2)[:, 0]


def recent(length: int, count: int, device: torch.device) -> Tensor:
    """The last ``count`` columns."""
    return torch.arange(length - count, length, device=device)


def best_and_recent(scores: Tensor, budget: int, last: int) -> Tensor:
    """scores [Hkv, T] -> the last columns and, of those before, the best, ``budget`` together: [Hkv, C], ascending."""
    heads, length = scores.shape
    best = scores[:, : length - last].topk(budget - last).indices
    return torch.cat([best.sort().values, recent(length, last, scores.device).expand(heads, -1)], 1)
