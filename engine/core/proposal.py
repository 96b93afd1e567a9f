"""A drafter's proposal for a step: a tree, and further rows for the target's pass over the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.seen import Begun, Probes
from engine.core.tree import DraftTree


@dataclass(frozen=True)
class Proposal:
    """A tree below the root, with extra rows or a partial reading. A drafter that has neither may return the tree
    itself.

    probes: extra rows that the drafter adds to the target's pass. begun: how far the drafter has already read this tree
    through the target's first layers.
    """

    tree: DraftTree
    probes: Probes | None = None
    begun: Begun | None = None

    @classmethod
    def of(cls, product: DraftTree | Proposal) -> Proposal:
        """The proposal for ``product``, the return value of ``Drafter.propose``."""
        return product if isinstance(product, cls) else cls(product)

    def truncated(self, max_depth: int) -> Proposal:
        """The proposal without nodes deeper than max_depth. If nodes are cut, probes and ``begun`` are dropped too,
        because they belong to the whole tree."""
        tree = self.tree.truncated(max_depth)
        return self if tree is self.tree else Proposal(tree)

    def behind(self, forced: Sequence[int]) -> Proposal:
        """The proposal with its tree moved below the tokens that the constraint forces; see ``DraftTree.behind``."""
        if not forced:
            return self
        probes = None if self.probes is None else self.probes.behind(len(forced))
        return Proposal(self.tree.behind(forced), probes, self.begun)
