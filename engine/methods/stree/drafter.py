"""A static tree, read in one pass by a target that keeps a recurrent state.

Wu et al., "STree: Speculative Tree Decoding for Hybrid State-Space Models" (2025). A state-space layer has no rows that
a mask could hide: its memory is one state. A scan of the tree's paths, one after another, would read shared rows again
for every path. Here products of the transitions along the tree replace these scans (``engine.model.states``), and a
refused path never affects the committed state.

The drafter is the paper's baseline: a draft model and a tree whose shape is fixed beforehand. The target reads the
trees of all other drafters by the same products.
"""

from engine.core.exhibits import Cell, Gauge, Table, Token
from engine.core.tree import DraftTree
from engine.methods.shared.levels import DrawnLevels, shape_option

SHOWN = 24  # most rows of the table


class STreeDrafter(DrawnLevels):
    key = "stree"
    title = "Tree on a state, STree"
    summary = "A static tree that a target with state-space layers reads in one pass."
    options = (shape_option("3-2-1-1-1", "Children of every node, level by level."),)
    trial = {"branching": "2-1"}

    def show(self, tree):
        """Add nothing, because the effect on the state is known only after the pass."""

    def observe(self, kept):
        super().observe(kept)
        if not len(kept.tree):
            return
        kept.tree.exhibits.append(_rows_read(kept.tree))
        transitions = getattr(self.start.target, "transitions", None)
        if transitions is not None and len(transitions) > len(kept.tree):
            own = transitions[-1 - len(kept.tree) :]  # behind forced tokens, the last is the root
            kept.tree.exhibits.append(_carried(kept.tree, kept.root, own.tolist()))


def _rows_read(tree: DraftTree) -> Gauge:
    """Show how many rows the pass had, and how many rows separate scans of all paths would have had."""
    leaves = [node for node in range(len(tree)) if not tree.children(node)]
    alone = sum(1 + len(tree.path(leaf)) for leaf in leaves)
    title = "Rows read in one pass"
    note = f"Scanned one by one, the {len(leaves)} paths would have {alone} rows."
    return Gauge(title, 1 + len(tree), maximum=max(alone, 1 + len(tree)), unit="rows", note=note)


def _carried(tree: DraftTree, root: int, transitions: list[list[float]]) -> Table:
    """Show, for each row of the tree, the share of the committed state that is left after this row. root: the root's
    token. transitions: [N + 1, L], for the root and N nodes, in the L layers with a state; see
    ``engine.model.hybrid.HybridSession``."""
    rows: list[list[Cell]] = [["root", Token(root), *transitions[0]]]
    for node, token in enumerate(tree.tokens[: SHOWN - 1]):
        rows.append([tree.depths[node], Token(token), *transitions[node + 1]])
    layers = [f"state layer {place}" for place in range(1, len(transitions[0]) + 1)]
    title = "Share of the committed state that is left at each row"
    note = "The product of the transitions along the path, in the mean over a layer's heads."
    return Table(title, ["depth", "token", *layers], rows, note=note)
