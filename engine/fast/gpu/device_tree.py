"""A drafted chain whose tokens have not left the device yet."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from engine.core.tree import ROOT, DraftTree, Draw

UNKNOWN = -1  # a token that only the device knows


@dataclass
class DeviceTree(DraftTree):
    """A draft tree whose tokens are on the device. It appears only in unrecorded texts.

    ids: the tokens, int32 [N], on the device. ``tokens`` holds UNKNOWN for each token until the verdict brings it to
    the host.
    """

    ids: Tensor | None = None

    @classmethod
    def chain_of(cls, ids: Tensor, q: Tensor | None, source: str) -> DeviceTree:
        """A chain of the tokens ``ids``, int32 [L]. q: the draft distributions that these tokens were drawn from, [at
        least L, V], or None if they were chosen greedily. source: the label of every node."""
        tree, parent = cls(ids=ids), ROOT
        for place in range(len(ids)):
            node = tree._append(parent, UNKNOWN, source, None)
            law = None if q is None else tree._law(q[place])
            tree.draws[parent] = [Draw(node, "one_hot" if q is None else "iid", law)]
            parent = node
        return tree

    def truncated(self, max_depth: int) -> DraftTree:
        """The tree itself, because drafters on the device never draft deeper than ``max_depth``. Raises ValueError if
        the tree is deeper."""
        if self.deepest > max_depth:
            raise ValueError(
                f"a tree on the device reaches {self.deepest}, deeper than {max_depth}"
            )
        return self
