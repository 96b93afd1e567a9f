"""The dynamic tree of EAGLE-2: expanded by joint confidence, then re-ranked.

Every candidate has a joint confidence, the product of the draft's probabilities along its path. A level's
best candidates are read next; at the end the best N of all are kept. A child is never more confident than
its parent, and of equals the parent comes first, so the N best always form a connected tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.tree import ROOT


@dataclass
class Candidates:
    """The candidates of a step, parents before children, one level after another.

    tokens, parents (-1: the text's last token), depths (1 for that token's children), own (the draft's probability
    after the parent) and joint: one entry per candidate. read: places of the candidates that the draft has read, in
    the order of its rows.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    joint: list[float] = field(default_factory=list)
    read: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(
        self,
        parents: Sequence[int],
        tokens: Sequence[Sequence[int]],
        chances: Sequence[Sequence[float]],
    ) -> None:
        """Add a level: for each parent its likeliest tokens and their probabilities. Tokens of probability 0
        are left out."""
        for parent, some, probabilities in zip(parents, tokens, chances, strict=True):
            above, depth = (1.0, 0) if parent == ROOT else (self.joint[parent], self.depths[parent])
            for token, own in zip(some, probabilities, strict=True):
                if above * own > 0:
                    self.tokens.append(token)
                    self.parents.append(parent)
                    self.depths.append(depth + 1)
                    self.own.append(own)
                    self.joint.append(above * own)

    def best(self, count: int) -> list[int]:
        """Places of the ``count`` most confident candidates, the most confident first; of equals, the one that
        was drafted first."""
        return sorted(range(len(self)), key=lambda place: (-self.joint[place], place))[:count]

    def worth_reading(self, width: int, count: int) -> list[int]:
        """The ``width`` most confident candidates of the last level, without those that are not among the best
        ``count`` so far: nothing below those could be among the best, either."""
        last = self.depths[-1] if self.depths else 0
        level = [place for place in self.best(count) if self.depths[place] == last]
        return level[:width]

    def path(self, place: int) -> tuple[int, ...]:
        """The tokens down to a candidate."""
        tokens: list[int] = []
        while place != ROOT:
            tokens.append(self.tokens[place])
            place = self.parents[place]
        return tuple(reversed(tokens))

    def seen_by(self, level: Sequence[int]) -> Tensor | None:
        """For R places that are read next, bool [R, S + R]: which of the S rows read so far, and of these R places,
        each place sees (its ancestors and itself). None if each place sees all of them."""
        if len(level) == 1 and len(self.read) == self.depths[level[0]] - 1:
            return None  # the rows read so far are its ancestors
        rows = {place: row for row, place in enumerate([*self.read, *level])}
        seen = torch.zeros(len(level), len(rows), dtype=torch.bool)
        for row, place in enumerate(level):
            while place != ROOT:
                seen[row, rows[place]] = True
                place = self.parents[place]
        return None if bool(seen.all()) else seen
