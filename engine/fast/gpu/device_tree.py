"""A draft tree whose tokens, and perhaps whose shape, have not left the device yet."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from engine.core.tree import ROOT, DraftTree, Draw, Kind
from engine.fast.gpu.shape import DeviceShape

UNKNOWN = -1  # a token that only the device knows


@dataclass
class DeviceTree(DraftTree):
    """Appears only in unrecorded texts.

    ids: [N] int32, the tokens on the device; ``tokens`` holds -1 until the host learns them.
    shape: parent indices on the device, or None where the host knows them. Until ``unfold()``, every
        node points to the root.
    """

    ids: Tensor | None = None
    shape: DeviceShape | None = None

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

    @classmethod
    def unseen(cls, kind: Kind, source: str, ids: Tensor, shape: DeviceShape) -> DeviceTree:
        """A tree whose tokens and shape are on the device."""
        tree = cls(ids=ids, shape=shape)
        for _ in range(len(ids)):
            node = tree._append(ROOT, UNKNOWN, source, None)
            tree.draws.setdefault(ROOT, []).append(Draw(node, kind, None))
        return tree

    def unfold(self, parents: list[int]) -> None:
        """Learn the shape. Entries below ROOT, which are all at the end, are not nodes."""
        size = sum(parent >= ROOT for parent in parents)
        kind, source, ids = self.draws[ROOT][0].kind, self.sources[0], self.ids[:size]
        for part in (self.tokens, self.parents, self.depths, self.q, self.sources):
            part.clear()
        self.draws.clear()
        self.ids, self.shape = ids, None
        for parent in parents[:size]:
            node = self._append(parent, UNKNOWN, source, None)
            self.draws.setdefault(parent, []).append(Draw(node, kind, None))

    def fetch(self) -> None:
        """Wait for the device and learn everything that only the device knows."""
        if self.shape is not None:
            self.unfold(self.shape.parents.tolist())
        if self.ids is not None:
            self.tokens[:] = self.ids.tolist()
            self.ids = None

    @property
    def deepest(self) -> int:
        """The depth of the deepest node, or an upper bound where the shape is not known."""
        return super().deepest if self.shape is None else self.shape.deepest

    def truncated(self, max_depth: int) -> DraftTree:
        """The tree itself, because device drafters never exceed the depth they are given."""
        if self.deepest > max_depth:
            raise ValueError(
                f"a tree on the device reaches {self.deepest}, deeper than {max_depth}"
            )
        return self
