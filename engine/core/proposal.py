"""A drafter's proposal for a step: a tree, and further rows for the target's pass over the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.seen import Begun, Probes
from engine.core.tree import DraftTree


@dataclass(frozen=True)
class Proposal:
    """A tree below the root, and what the drafter adds to the target's pass over the tree. A drafter that adds nothing
    may return the tree itself.

    probes: extra rows in the target's pass. begun: the hidden states after the target's first layers for rows of this
    tree, if the drafter has already computed them.
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
        """The proposal for the tree that ``DraftTree.behind`` makes: first the tokens that the constraint forces, and
        below the last of them this tree."""
        if not forced:
            return self
        probes = None if self.probes is None else self.probes.behind(len(forced))
        return Proposal(self.tree.behind(forced), probes, self.begun)
