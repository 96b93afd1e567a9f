"""The common base of drafters whose probe rows predict the tokens to come, which the next pass verifies as a tree.

The likeliest paths through the predicted distributions form the tree. Probes stand behind the nodes at which a step
is likeliest to end, because the next draft can come only from there. The tree has the size that pays on this machine.
"""

from typing import ClassVar

from engine.core.drafter import tree_size
from engine.core.exhibits import Cell, Exhibit, Table, Token
from engine.core.options import Option, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.best_first_tree import best_first_tree
from engine.methods.shared.probing import ProbingDrafter

SHOWN = 3  # tokens of a place


class ProbedTreeDrafter(ProbingDrafter):
    family = "heads"
    size_option, usual_size = "budget", 4
    trial = {"budget": 3, "asked": 2}
    probes_are: ClassVar[str]
    """The name of its probe rows."""

    @classmethod
    def usual_options(cls, asked: int, probes_are: str) -> tuple[Option, ...]:
        """The options of every such drafter."""
        return (
            tree_size(64),
            whole("asked", asked, 1, 16, f"Nodes with {probes_are}").meaning(
                f"Most nodes, the likeliest ends of the step, behind which {probes_are} stand."
            ),
        )

    def propose(self, context, max_depth):
        tree, laws = DraftTree(), self._laws(context)
        if len(laws):
            tree = best_first_tree(laws[:max_depth], self.settings["budget"])
        proposal = self._asking_behind(tree, self._likeliest_ends(tree), context)
        tree.exhibits += self._shown(tree, laws)
        return proposal

    def _likeliest_ends(self, tree: DraftTree) -> list[int]:
        """The nodes at which the step is likeliest to end by the laws of the tree: those that are reached while none
        of their children is right."""
        reached = {ROOT: 1.0}
        for node, parent in enumerate(tree.parents):
            reached[node] = reached[parent] * (tree.q[node] or 0.0)
        ends = dict(reached)
        for node, parent in enumerate(tree.parents):
            ends[parent] -= reached[node]
        order = sorted(ends, key=lambda node: (-ends[node], node))
        return order[: self.settings["asked"]]

    def _shown(self, tree: DraftTree, laws) -> list[Exhibit]:
        return [self._said(tree, laws)] if len(laws) else []

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
        name = self.probes_are
        return Table(
            title=f"What the {name} predicted in the pass before",
            note=f"{name[0].upper()}{name[1:]} stand behind {len(self._asked)} places of this step's tree.",
            columns=["place", *names, "drafted"],
            rows=rows,
        )
