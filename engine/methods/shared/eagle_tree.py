"""The dynamic tree of EAGLE-2: expanded by joint confidence, then re-ranked.

Every candidate has a joint confidence, the product of the cell's probabilities along its path. The cell is run over the
best candidates of a level to get the next level. At the end the best N candidates of all levels form the tree. A child
is never more confident than its parent, and a parent is ranked before an equally confident child, so the N best
candidates always form a connected tree.
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

    Candidates are numbered in this order from 0, and -1 stands for the text's last token. All lists but ``read`` have
    one entry per candidate. tokens: its token. parents: the number of its parent. depths: 1 for the children of the
    text's last token. own: its q after the parent. joint: the product of q along its path. read: the numbers of the
    candidates over which the cell was run, in the order of its rows.
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
        """Add a level of candidates. parents: numbers of candidates. tokens, chances: for each parent, its likeliest
        next tokens and their q. Candidates whose joint confidence would be 0 are left out."""
        for parent, level_tokens, probabilities in zip(parents, tokens, chances, strict=True):
            above, depth = (1.0, 0) if parent == ROOT else (self.joint[parent], self.depths[parent])
            for token, own in zip(level_tokens, probabilities, strict=True):
                if above * own > 0:
                    self.tokens.append(token)
                    self.parents.append(parent)
                    self.depths.append(depth + 1)
                    self.own.append(own)
                    self.joint.append(above * own)

    def best(self, count: int) -> list[int]:
        """Return the numbers of the ``count`` most confident candidates, the most confident first. Among equally
        confident candidates, the one drafted first comes first."""
        return sorted(range(len(self)), key=lambda place: (-self.joint[place], place))[:count]

    def worth_reading(self, width: int, count: int) -> list[int]:
        """Return the numbers of the ``width`` most confident candidates of the last level. Candidates that are not
        among the best ``count`` of all levels are left out, because none of their descendants could be among the
        best."""
        last = self.depths[-1] if self.depths else 0
        level = [place for place in self.best(count) if self.depths[place] == last]
        return level[:width]

    def path(self, place: int) -> tuple[int, ...]:
        """Return the tokens on the path from the root's child down to candidate number ``place``."""
        tokens: list[int] = []
        while place != ROOT:
            tokens.append(self.tokens[place])
            place = self.parents[place]
        return tuple(reversed(tokens))

    def seen_by(self, level: Sequence[int]) -> Tensor | None:
        """Return the attention mask for running the cell over R candidates: bool [R, S + R]. An entry is True where a
        candidate attends to one of the S earlier candidates or of these R candidates: to its ancestors and to itself.
        Returns None if every entry would be True. level: the numbers of the R candidates."""
        if len(level) == 1 and len(self.read) == self.depths[level[0]] - 1:
            return None  # the rows read so far are its ancestors
        rows = {place: row for row, place in enumerate([*self.read, *level])}
        seen = torch.zeros(len(level), len(rows), dtype=torch.bool)
        for row, place in enumerate(level):
            while place != ROOT:
                seen[row, rows[place]] = True
                place = self.parents[place]
        return None if bool(seen.all()) else seen
