"""A drafted chain whose tokens have not left the device yet."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from engine.core.tree import ROOT, DraftTree, Draw

UNKNOWN = -1  # a token that only the device knows


@dataclass
class DeviceTree(DraftTree):
    """Appears only in unrecorded texts.

    ids: [N] int32, the tokens on the device; ``tokens`` holds -1 until the host learns them.
    """

    ids: Tensor | None = None

    @classmethod
    def chain_of(cls, ids: Tensor, q: Tensor | None, source: str) -> DeviceTree:
        """One branch with the tokens ``ids``, int32 [L]. q: the rows [at least L, V] they were drawn from,
        or None."""
        tree, parent = cls(ids=ids), ROOT
        for place in range(len(ids)):
            node = tree._append(parent, UNKNOWN, source, None)
            law = None if q is None else tree._law(q[place])
            tree.draws[parent] = [Draw(node, "one_hot" if q is None else "iid", law)]
            parent = node
        return tree

    def truncated(self, max_depth: int) -> DraftTree:
        """The tree itself, because device drafters never exceed the depth they are given."""
        if self.deepest > max_depth:
            raise ValueError(
                f"a tree on the device reaches {self.deepest}, deeper than {max_depth}"
            )
        return self
