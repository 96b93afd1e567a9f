"""Base classes of drafters that add probe rows to the target's pass: rows that are not part of the text and are dropped
after the pass. The target's logits at these rows predict later tokens.

Such a drafter has a trained part that makes the probe rows. The probe rows of a node are said to stand behind the node:
they attend to the text up to this node. The part must have:
``places``: the number of later tokens that the probes behind a node predict.
``len(part)``: the number of probe rows behind a node.
``probes(nodes, size)``: the probe rows behind these nodes of a tree of ``size`` nodes.
``rows_behind(index, asked)``: the indices, among all probe rows, of those behind the index-th of ``asked`` nodes.
``logits(rows)``: a function from the target's logits at the probe rows of a node to logits [places, V].
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from engine.core.drafter import Drafter, tree_size
from engine.core.exhibits import Cell, Exhibit, Table, Token
from engine.core.options import Option, whole
from engine.core.proposal import Proposal
from engine.core.sampling import display_distribution
from engine.core.seen import MOST_PROBES
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.fixed_shape import best_first_tree
from engine.model.language_model import LanguageModel


class ProbingDrafter(Drafter):
    """Base class of drafters with probes. The same pass of the target gives the next token after the last accepted
    node, and its probes behind this node predict the tokens after that next token."""

    uses_target = True
    draw_kinds = ("one_hot",)

    def __init__(self, settings, target: LanguageModel, part) -> None:
        super().__init__(settings)
        self.target, self.part = target, part

    @classmethod
    def build(cls, settings, models):
        (role,) = cls.needs
        return cls(settings, models.target, models.part(role))

    def begin(self, start):
        super().begin(start)
        self._marginals: Tensor | None = None  # q [K, V] at the K predicted places, on the host
        self._asked: dict[int, list[int]] = {}  # node -> the numbers of its probe rows
        self._committed = len(start.prompt)

    def observe(self, kept):
        rows = self._asked.get(kept.path[-1] if kept.path else ROOT)
        self._marginals = None
        self._committed = kept.position + len(kept.tokens)
        if kept.probes is not None and rows:
            logits = self.part.logits(kept.probes[rows])
            self._marginals = display_distribution(logits, self.sampling).cpu()

    def _laws(self, context: Sequence[int]) -> Tensor:
        """Return the predicted distributions q [k, V] of the next k tokens; k is 0 if there is no prediction. Each
        forced token at the end of the context takes the position of a predicted token, so it makes k smaller by 1."""
        if self._marginals is None:
            return torch.zeros(0, self.target.vocab_size)
        return self._marginals[len(context) - self._committed :]

    def _asking_behind(
        self, tree: DraftTree, nodes: Sequence[int], context: Sequence[int]
    ) -> Proposal:
        """Return the proposal: the tree, with probes behind these nodes, which may include ROOT. Nodes too deep for the
        target's maximum context get no probes. If the pass has no room for the probes of all nodes, the nodes that come
        first get them."""
        deepest = self.target.max_context - len(context) - self.part.places
        fitting = [node for node in nodes if len(tree.path(node)) <= deepest]
        fitting = fitting[: MOST_PROBES // len(self.part)]
        count = len(fitting)
        self._asked = {
            node: list(self.part.rows_behind(index, count)) for index, node in enumerate(fitting)
        }
        return Proposal(tree, self.part.probes(fitting, len(tree)) if fitting else None)


def sure_tokens(marginals: Tensor) -> list[tuple[int, float]]:
    """Return, for each of the K positions of q [K, V], the likeliest token and its probability."""
    best = marginals.max(-1)
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


SHOWN = 3  # tokens shown for each place


class ProbedTreeDrafter(ProbingDrafter):
    """Drafts a tree of the likeliest paths through the predicted distributions. Probes are put behind the nodes that
    are likeliest to be the last accepted node, because only the probes behind that node can predict the next draft."""

    family = "heads"
    size_option, usual_size = "budget", 4
    trial = {"budget": 3, "asked": 2}
    probes_are: ClassVar[str]
    """What the page calls the probe rows."""

    @classmethod
    def usual_options(cls, probes_are: str) -> tuple[Option, ...]:
        """The options that all drafters of this kind have."""
        return (
            tree_size(64),
            whole("asked", 3, 1, 16, f"Nodes with {probes_are}").meaning(
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
        """Return the nodes that are likeliest to be the last accepted node, by the q of the tree, the likeliest first.
        A node is the last accepted one if it is accepted and none of its children is."""
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
        title = f"What the {name} predicted in the pass before"
        note = f"{name[0].upper()}{name[1:]} stand behind {len(self._asked)} places of this step's tree."
        return Table(title, ["place", *names, "drafted"], rows, note=note)
