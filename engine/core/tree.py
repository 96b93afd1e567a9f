"""The one data structure in which every drafter returns its guesses.

A chain is a tree with one branch. Each draw of a token carries the data that a verifier needs to be exact: how the
token was proposed, and the distribution from which it was drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from engine.core.exhibits import Exhibit, Later

ROOT = -1  # as a parent: the last committed token, which is not a node of the tree
FORCED = "forced"  # as a source: the constraint left no choice

Kind = Literal["one_hot", "iid", "without_replacement"]


@dataclass(frozen=True)
class Draw:
    """One draw under a parent.

    kind: ``one_hot`` (chosen in any way that does not use the verifier's randomness), ``iid``
        (an independent draw from its law) or ``without_replacement`` (drawn from its law without
        the tokens that were drawn from the same law under the same parent before).
    law: index into the tree's ``laws``, or None for a one-hot draw that has no distribution.
    """

    node: int
    kind: Kind
    law: int | None


@dataclass
class DraftTree:
    """Drafted tokens as flat arrays, parents before children.

    tokens, parents, depths: one entry per node; the parent -1 is the root, whose children have depth 1.
    q: for display, the probability that the drafter gave each node's token under its parent; None if it gave none.
    sources: the maker of each node (a drafter's key, "draft model", "context 17:20" ...).
    laws: every distribution [V] that was drawn from or is shown, after temperature and truncation, stored once.
    draws: the draws under each parent, in the order drawn. An i.i.d. draw that repeats a token is a further entry here,
    but adds no node: it refers to the node that holds the token.
    exhibits: data about this step that the drafter wants to show.
    aside: further data that a drafter hands to the rule made for it. A tree that is put together from other trees has
    none.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    q: list[float | None] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    laws: list[Tensor] = field(default_factory=list)
    draws: dict[int, list[Draw]] = field(default_factory=dict)
    exhibits: list[Exhibit | Later] = field(default_factory=list)
    aside: object | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def draw(
        self,
        parent: int,
        token: int,
        kind: Kind = "one_hot",
        law: Tensor | None = None,
        source: str = "",
        q: float | None = None,
    ) -> int:
        """Record one more draw under ``parent``. Returns the drawn node: a new one, or the child of ``parent`` that
        already holds this token.

        law: [V], the distribution drawn from; for a one-hot draw, a distribution to show, or None.
        q: the probability to show, if the caller knows it; None takes it from ``law``. Raises ValueError for a parent
        that is not a node, a drawn token without a law, and a token drawn again without replacement.
        """
        if not ROOT <= parent < len(self.tokens):
            raise ValueError(f"the parent {parent} is no node of this tree")
        if kind != "one_hot" and law is None:
            raise ValueError(f"a draw under {parent} has no distribution it was drawn from")
        index = None if law is None else self._law(law)
        token = int(token)
        node = self.child(parent, token)
        if node is None:
            if q is None and law is not None:
                q = float(law[token])
            node = self._append(parent, token, source, q)
        elif kind == "one_hot":
            return node  # the token is a child already: a second look at it can change nothing
        record = Draw(node, kind, index)
        siblings = self.draws.setdefault(parent, [])
        if kind == "without_replacement" and record in siblings:
            raise ValueError(f"token {token} was drawn twice without replacement under {parent}")
        siblings.append(record)
        return node

    def child(self, parent: int, token: int) -> int | None:
        """The child of ``parent`` that holds this token, or None."""
        for record in self.draws.get(parent, ()):
            if self.tokens[record.node] == token:
                return record.node
        return None

    def chain(
        self, tokens: Sequence[int], source: str, under: int = ROOT, q: Sequence[float] = ()
    ) -> int:
        """Append a branch of one-hot draws below ``under``, and return the last node of the branch. q: probabilities to
        show, for the first len(q) nodes of the branch."""
        for place, token in enumerate(tokens):
            shown = q[place] if place < len(q) else None
            under = self.draw(under, token, source=source, q=shown)
        return under

    def graft(self, other: DraftTree, under: int = ROOT) -> list[int]:
        """Merge another tree below ``under``. Returns, for each node of the other tree, the node of this tree.

        Common prefixes become one path. The other tree's draws keep their kind, law and order, and follow the draws
        that are already here.
        """
        place_of = {ROOT: under}
        for parent in range(ROOT, len(other)):
            for record in other.draws.get(parent, ()):
                node = record.node
                law = None if record.law is None else other.laws[record.law]
                place_of[node] = self.draw(
                    place_of[parent],
                    other.tokens[node],
                    record.kind,
                    law,
                    other.sources[node],
                    other.q[node],
                )
        self.exhibits += other.exhibits
        return [place_of[node] for node in range(len(other))]

    @property
    def forced(self) -> int:
        """The number of nodes that the constraint forced. They are the first nodes, a chain below the root."""
        return self.sources.count(FORCED)

    def behind(self, forced: Sequence[int]) -> DraftTree:
        """Return a new tree: the chain of tokens that the constraint forces, and below its last token a copy of this
        tree. Node i of this tree becomes node i + len(forced), and the last forced token takes the place of the root.
        The new tree has this tree's laws and exhibits."""
        size, whole = len(forced), DraftTree()
        whole.chain(forced, FORCED)
        whole.tokens += self.tokens
        whole.parents += [parent + size for parent in self.parents]
        whole.depths += [depth + size for depth in self.depths]
        whole.q += self.q
        whole.sources += self.sources
        whole.laws = self.laws
        for parent, records in self.draws.items():
            whole.draws[parent + size] = [Draw(d.node + size, d.kind, d.law) for d in records]
        whole.exhibits = self.exhibits  # a drafter may add to them when it observes
        return whole

    def children(self, parent: int) -> list[int]:
        """The distinct children of ``parent``, in the order in which they were first drawn."""
        return list(dict.fromkeys(record.node for record in self.draws.get(parent, ())))

    def path(self, node: int) -> list[int]:
        """The nodes from depth 1 down to ``node``; empty for the root."""
        path: list[int] = []
        while node != ROOT:
            path.append(node)
            node = self.parents[node]
        return path[::-1]

    def shown_law(self, parent: int) -> Tensor | None:
        """The distribution [V] to show beside p after ``parent``: the law of the first draw that has one."""
        laws = (record.law for record in self.draws.get(parent, ()))
        index = next((law for law in laws if law is not None), None)
        return None if index is None else self.laws[index]

    @property
    def deepest(self) -> int:
        """The depth of the deepest node; 0 without nodes."""
        return max(self.depths, default=0)

    def ancestor_mask(self) -> Tensor:
        """Bool [N+1, N+1], true where row i may see column j. Row and column 0 are the root."""
        size = len(self.tokens) + 1
        mask = torch.zeros(size, size, dtype=torch.bool)
        mask[:, 0] = True
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                mask[node + 1] |= mask[parent + 1]
            mask[node + 1, node + 1] = True
        return mask

    def truncated(self, max_depth: int) -> DraftTree:
        """Return the tree without nodes deeper than max_depth; the tree itself if no node is deeper.

        Cutting by depth is exact under every rule, because a node's depth never depends on a drawn value.
        """
        if self.deepest <= max_depth:
            return self
        cut = DraftTree(laws=list(self.laws), exhibits=self.exhibits)
        place_of = {ROOT: ROOT}
        for node, depth in enumerate(self.depths):
            if depth <= max_depth:
                parent = place_of[self.parents[node]]
                place_of[node] = cut._append(
                    parent, self.tokens[node], self.sources[node], self.q[node]
                )
        for parent, siblings in self.draws.items():
            kept = [Draw(place_of[d.node], d.kind, d.law) for d in siblings if d.node in place_of]
            if kept:
                cut.draws[place_of[parent]] = kept
        return cut

    def _append(self, parent: int, token: int, source: str, q: float | None) -> int:
        self.tokens.append(token)
        self.parents.append(parent)
        self.depths.append(1 if parent == ROOT else self.depths[parent] + 1)
        self.q.append(q)
        self.sources.append(source)
        return len(self.tokens) - 1

    def _law(self, law: Tensor) -> int:
        """The index of this tensor among the laws; a tensor that is not among them, by identity, is appended."""
        for index in range(len(self.laws) - 1, -1, -1):
            if self.laws[index] is law:
                return index
        self.laws.append(law)
        return len(self.laws) - 1
