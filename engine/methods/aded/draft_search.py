"""Monte-Carlo tree search that decides which continuations are drafted.

A simulation walks down from the root, always to the child with the highest score, until it reaches a child that no
simulation has visited. Then every node on this path gets a value: how many of the path's tokens from this node on are
expected to be accepted, divided by the greatest depth. The score is that of AlphaZero (PUCT):

Q + P * sqrt(N) / (1 + n) * (EXPLORE + log((N + SLOWLY + 1) / SLOWLY))

P: the child's probability. n: the child's visits. N: the visits of the child and all its siblings. Q: the mean value of
the child in the simulations through it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

EXPLORE = 1.25
SLOWLY = 19_652
"""The search grows more curious only slowly: once a node has about this many visits, its seldom-tried children get
clearly more weight than at the beginning."""

Prior = Callable[[tuple[int, int]], list[tuple[int, float]]]
"""(token, next token) -> the tokens that may come after these two, with their probabilities."""


@dataclass
class Place:
    """A node of the search tree. token: the token on the edge to this node. chance: the token's probability after its
    parent."""

    token: int
    chance: float
    depth: int
    parent: Place | None = None
    visits: int = 0
    worth: float = 0.0
    """The sum of the values of the simulations through this node."""
    children: list[Place] | None = None
    """The nodes below; None until a simulation has expanded this node."""
    order: int = 0
    """The number of the first simulation that visited this node."""

    @property
    def mean(self) -> float:
        """Q: the mean value of the simulations through this node; 0 if there were none."""
        return self.worth / self.visits if self.visits else 0.0


@dataclass
class DraftSearch:
    """One search for a draft. prior: returns the probabilities of next tokens. before: the last two tokens of the text.
    most_depth: the greatest depth of a node. explore: the weight of trying seldom-tried children against that of
    following good ones; AlphaZero's is 1."""

    prior: Prior
    before: tuple[int, int]
    most_depth: int
    explore: float = 1.0
    root: Place = field(init=False)
    visited: list[Place] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.root = Place(self.before[1], 1.0, 0)

    def run(self, simulations: int) -> None:
        """Run this many simulations; none if the root has no child."""
        for number in range(simulations):
            leaf = self._descend(number + 1)
            if leaf is self.root:
                return
            self._back_up(leaf)

    def best(self, most: int) -> list[Place]:
        """Return the ``most`` most visited nodes; of equally visited nodes, the one that was reached first comes first.
        Parents come before children, because no child has more visits than its parent."""
        return sorted(self.visited, key=lambda place: (-place.visits, place.order))[:most]

    def _descend(self, number: int) -> Place:
        place = self.root
        while place.depth < self.most_depth:
            if place.children is None:
                place.children = self._after(place)
            if not place.children:
                break
            place = self._choose(place.children)
            if not place.visits:
                place.order = number
                self.visited.append(place)
                break
        return place

    def _after(self, place: Place) -> list[Place]:
        above = self.before[0] if place.parent is None else place.parent.token
        return [
            Place(token, chance, place.depth + 1, place)
            for token, chance in self.prior((above, place.token))
        ]

    def _choose(self, siblings: list[Place]) -> Place:
        total = sum(node.visits for node in siblings)
        pull = self.explore * math.sqrt(total or 1)
        pull *= EXPLORE + math.log((total + SLOWLY + 1) / SLOWLY)
        return max(siblings, key=lambda node: node.mean + pull * node.chance / (1 + node.visits))

    def _back_up(self, leaf: Place) -> None:
        value, place = 0.0, leaf
        while place.parent is not None:
            value = place.chance * (1.0 + value)
            place.visits += 1
            place.worth += value / self.most_depth
            place = place.parent
        self.root.visits += 1
