"""Draft trees of a given size, for measuring."""

from torch import Tensor

from engine.core.tree import ROOT, DraftTree


def binary_tree(nodes: int, q: Tensor | None = None) -> DraftTree:
    """Two children per node, level by level, with a different token each; drawn from q if given."""
    tree = DraftTree()
    kind = "one_hot" if q is None else "without_replacement"
    for node in range(nodes):
        parent = ROOT if node < 2 else node // 2 - 1
        tree.draw(parent, 10 + node, kind, q, "bench")
    return tree
