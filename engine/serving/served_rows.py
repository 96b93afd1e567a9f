"""The target's law at the nodes of a draft, according to a serving engine's answers.

Only some log-probabilities of each row are known. The remaining probability is spread evenly over all other tokens.
This keeps the sum of the remaining probability, and at temperature 0 it keeps the likeliest token, on which alone the
decision depends.
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
"""At temperature 0, the number of log-probabilities that are requested for each row, as many as a trace shows. At
temperature 1, the number of tokens to which the draft model's laws are cut."""
MOST_PROMPTS = 64
MOST_TOKENS = 1 << 20
"""The most tokens in all prompts of a question together."""


@dataclass(frozen=True)
class Row:
    """The part of the target's law at one node that the engine reports.

    told: token -> log-probability. drawn: the engine's own draw from p without the tokens in ``banned``; None at
    temperature 0.
    """

    told: Mapping[int, float]
    drawn: int | None = None
    banned: frozenset[int] = frozenset()

    def logits(self, vocabulary: int) -> Tensor:
        """The logits [V] of a law in which all tokens that the engine did not report share the remaining probability
        evenly. Raises ValueError for numbers that are no log-probabilities, and IndexError for an unknown token."""
        logprobs = self.told
        if not logprobs or any(not p <= 1e-4 for p in logprobs.values()):
            raise ValueError
        if not 0 <= min(logprobs) <= max(logprobs) < vocabulary:
            raise IndexError
        rest, unknown = 1 - sum(map(math.exp, logprobs.values())), vocabulary - len(logprobs)
        row = torch.full(
            (vocabulary,), math.log(rest / unknown) if min(rest, unknown) > 0 else -math.inf
        )
        row[list(logprobs)] = torch.tensor(list(logprobs.values()))
        return row


@dataclass(frozen=True)
class ServedSeen(Seen):
    """The engine's answer for a text and a draft. rows: for the root and for each node. calls: the number of requests
    to the engine."""

    rows: Sequence[Row] = ()
    calls: int = 1


@dataclass(frozen=True)
class Reading:
    """A text and a draft after it, which the serving engine is to read.

    seed: the seed of the engine's draws at temperature 1; None at temperature 0.
    """

    text: Sequence[int]
    tree: DraftTree
    seed: int | None = None

    def prompt(self, place: int) -> list[int]:
        """The text and the tokens of the draft up to ``place``, the root or a node."""
        return [*self.text, *(self.tree.tokens[node] for node in self.path(place))]

    def path(self, place: int) -> list[int]:
        """The nodes from depth 1 down to ``place``; empty for the root."""
        path: list[int] = []
        while place != ROOT:
            path.append(place)
            place = self.tree.parents[place]
        return path[::-1]

    @property
    def leaves(self) -> list[int]:
        """The nodes without children, or the root if the draft is empty."""
        tree = self.tree
        return [place for place in range(ROOT, len(tree)) if not tree.children(place)]

    def possible(self, place: int) -> frozenset[int]:
        """The tokens of the draft directly below ``place``, and all others that the drafter could have drawn at that
        position."""
        tree = self.tree
        tokens = {tree.tokens[node] for node in tree.children(place)}
        for drawn in tree.draws.get(place, ()):
            if drawn.kind != "one_hot":
                tokens.update(tree.laws[drawn.law].nonzero().flatten().tolist())
        return frozenset(tokens)


@dataclass(frozen=True)
class Question:
    """A request to the engine. path: the path of the request's URL. prompts: the prompts that the engine must read.
    rows: a function that turns the engine's answer into rows by node; it raises KeyError, IndexError, TypeError,
    ValueError or AttributeError for a malformed answer."""

    path: str
    body: dict
    prompts: Sequence[Sequence[int]]
    rows: Callable[[Any], dict[int, Row]]
