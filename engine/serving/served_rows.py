"""The target's law at the places of a draft, as far as a serving engine reports it.

Of each row, only some log-probabilities are known. What is left of p is spread evenly over all other tokens: its sum is
right, and at temperature 0 the likeliest token, which decides, stays the likeliest.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.core.seen import Seen
from engine.core.tree import ROOT, DraftTree

KNOWN = 8
"""Log-probabilities of a row that are asked for at temperature 0, as many as a trace shows; and, at temperature 1, how many
tokens a draft model draws from."""
MOST_PROMPTS = 64
MOST_TOKENS = 1 << 20
"""Of all prompts of a question together."""


@dataclass(frozen=True)
class Row:
    """The target's law in one place, as far as it is told.

    told: log-probabilities of tokens. drawn: the engine's own draw from p without the tokens in ``banned``; None at
    temperature 0.
    """

    told: Mapping[int, float]
    drawn: int | None = None
    banned: frozenset[int] = frozenset()

    def logits(self, vocabulary: int) -> Tensor:
        """[V]. Raises ValueError for numbers that are no log-probabilities, and IndexError for an unknown token."""
        told = self.told
        if not told or any(not p <= 1e-4 for p in told.values()):
            raise ValueError
        if not 0 <= min(told) <= max(told) < vocabulary:
            raise IndexError
        rest, others = 1 - sum(map(math.exp, told.values())), vocabulary - len(told)
        row = torch.full(
            (vocabulary,), math.log(rest / others) if min(rest, others) > 0 else -math.inf
        )
        row[list(told)] = torch.tensor(list(told.values()))
        return row


@dataclass(frozen=True)
class ServedSeen(Seen):
    """rows: of the root and of each node. calls: how many questions the engine was asked."""

    rows: Sequence[Row] = ()
    calls: int = 1


@dataclass(frozen=True)
class Reading:
    """A question to the serving engine: a text, and a draft behind it.

    seed: seeds the engine's draws at temperature 1; None at temperature 0.
    """

    text: Sequence[int]
    tree: DraftTree
    seed: int | None = None

    def prompt(self, place: int) -> list[int]:
        """The tokens up to a place, the root or a node."""
        return [*self.text, *(self.tree.tokens[node] for node in self.path(place))]

    def path(self, place: int) -> list[int]:
        """The nodes from the first one below the root to this one."""
        path: list[int] = []
        while place != ROOT:
            path.append(place)
            place = self.tree.parents[place]
        return path[::-1]

    @property
    def leaves(self) -> list[int]:
        """The places without children."""
        tree = self.tree
        return [place for place in range(ROOT, len(tree)) if not tree.children(place)]

    def possible(self, place: int) -> frozenset[int]:
        """The tokens that the draft has, or could have drawn, below a place."""
        tree = self.tree
        tokens = {tree.tokens[node] for node in tree.children(place)}
        for drawn in tree.draws.get(place, ()):
            if drawn.kind != "one_hot":
                tokens.update(tree.laws[drawn.law].nonzero().flatten().tolist())
        return frozenset(tokens)


@dataclass(frozen=True)
class Question:
    """path: on the server. prompts: that the engine must read. rows: makes rows, by place, of the engine's answer. It raises
    KeyError, IndexError, TypeError, ValueError or AttributeError for an answer that the engine would not give."""

    path: str
    body: dict
    prompts: Sequence[Sequence[int]]
    rows: Callable[[Any], dict[int, Row]]
