"""A drafter's proposal for a step: a tree, and the rows that enter the target's pass with the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.seen import Begun, Probes
from engine.core.tree import DraftTree


@dataclass(frozen=True)
class Proposal:
    """A tree below the root. Where nothing goes with it, a drafter may return the tree by itself.

    probes: extra rows that the drafter adds to the target's pass. begun: how far it has already read this tree through the
    target's first layers.
    """

    tree: DraftTree
    probes: Probes | None = None
    begun: Begun | None = None

    @classmethod
    def of(cls, product: DraftTree | Proposal) -> Proposal:
        """product: what ``Drafter.propose`` returned."""
        return product if isinstance(product, cls) else cls(product)

    def truncated(self, max_depth: int) -> Proposal:
        """Without nodes deeper than max_depth; a tree that is cut goes alone, because the other rows belong to all of it."""
        tree = self.tree.truncated(max_depth)
        return self if tree is self.tree else Proposal(tree)

    def behind(self, forced: Sequence[int]) -> Proposal:
        """The proposal moved behind the tokens that the constraint forces; see ``DraftTree.behind``."""
        if not forced:
            return self
        probes = None if self.probes is None else self.probes.behind(len(forced))
        return Proposal(self.tree.behind(forced), probes, self.begun)
