"""Prompt tokens in the target's pass predict the tokens to come, which the next pass verifies as a tree.

Chen et al., "Hardware-Aware Parallel Prompt Decoding for Memory-Efficient Acceleration of LLM Inference" (2024). The
likeliest paths through the predicted distributions form the tree. Prompt tokens stand behind the nodes at which a step
is likeliest to end, because the next draft can come only from there. The tree has the size that pays on this machine.
"""

from __future__ import annotations

from engine.drafters.ddtree import best_first_tree
from engine.drafters.prompted import PromptedDrafter
from engine.exhibits import Cell, Table, Token
from engine.options import Option
from engine.tree import ROOT, DraftTree

SHOWN = 3  # tokens of a place


class PromptDecodingDrafter(PromptedDrafter):
    key = "ppd"
    title = "Prompt tokens, PPD"
    family = "heads"
    summary = "Trained prompt tokens in the target's own pass predict the tokens to come."
    options = (
        Option(
            "budget",
            "int",
            0,
            "Most nodes of the tree (0: the size that pays).",
            0,
            64,
            label="Nodes",
        ),
        Option(
            "asked",
            "int",
            3,
            "Most nodes, the likeliest ends of the step, behind which prompt tokens stand.",
            1,
            16,
            label="Nodes with prompt tokens",
        ),
    )
    size_option, usual_size = "budget", 4
    trial = {"budget": 3, "asked": 2}

    def propose(self, context, max_depth):
        tree, laws = DraftTree(), self._laws(context)
        if len(laws):
            tree = best_first_tree(laws[:max_depth], self.settings["budget"])
        self._ask_behind(tree, self._likeliest_ends(tree), context)
        if len(laws):
            tree.exhibits.append(self._said(tree, laws))
        return tree

    def _likeliest_ends(self, tree: DraftTree) -> list[int]:
        """By the laws of the tree: a step ends at a node when it is reached and none of its children is right."""
        reached = {ROOT: 1.0}
        for node, parent in enumerate(tree.parents):
            reached[node] = reached[parent] * (tree.q[node] or 0.0)
        ends = dict(reached)
        for node, parent in enumerate(tree.parents):
            ends[parent] -= reached[node]
        order = sorted(ends, key=lambda node: (-ends[node], node))
        return order[: self.settings["asked"]]

    def _said(self, tree: DraftTree, laws) -> Table:
        depths = set(tree.depths)
        rows: list[list[Cell]] = []
        for place, law in enumerate(laws):
            best = law.topk(min(SHOWN, len(law)))
            cells: list[Cell] = []
            for token, sure in zip(best.indices.tolist(), best.values.tolist(), strict=True):
                cells += [Token(token), sure]
            rows.append(
                [place + 1, *cells, *[None] * (2 * SHOWN - len(cells)), place + 1 in depths]
            )
        names = [name for rank in range(1, SHOWN + 1) for name in (f"token {rank}", f"q {rank}")]
        return Table(
            title="What the prompt tokens predicted in the pass before",
            note=f"Prompt tokens stand behind {len(self._first)} places of this step's tree.",
            columns=["place", *names, "drafted"],
            rows=rows,
        )
