"""Base classes of drafters that add probe rows to the target's pass. After the pass, the probes' logits predict later
tokens.

Such a drafter has a part that makes the probe rows. The part must have:
``places``: how many later tokens the probes behind a node predict.
``len(part)``: how many probe rows stand behind a node.
``probes(nodes, size)``: the probe rows behind these nodes of a tree of ``size`` nodes.
``rows_behind(index, asked)``: which of all probe rows stand behind the index-th of ``asked`` nodes.
``logits(rows)``: the target's logits at the probe rows of a node -> logits [places, V].
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
    """Base class of drafters with probes. The probes behind the last accepted node predict the tokens after the next
    one. The next token itself is the target's own, from the same pass."""

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
        """The predicted laws q [k, V] of the next k places; k is 0 if there is no prediction. Forced tokens at the end
        of the context take the first of the predicted places, so they make k smaller."""
        if self._marginals is None:
            return torch.zeros(0, self.target.vocab_size)
        return self._marginals[len(context) - self._committed :]

    def _asking_behind(
        self, tree: DraftTree, nodes: Sequence[int], context: Sequence[int]
    ) -> Proposal:
        """The proposal of a tree with probes behind these nodes, which may include ROOT. Nodes too deep for the
        target's context get no probes. If the pass has no room for all probes, earlier nodes take precedence."""
        deepest = self.target.max_context - len(context) - self.part.places
        fitting = [node for node in nodes if len(tree.path(node)) <= deepest]
        fitting = fitting[: MOST_PROBES // len(self.part)]
        count = len(fitting)
        self._asked = {
            node: list(self.part.rows_behind(index, count)) for index, node in enumerate(fitting)
        }
        return Proposal(tree, self.part.probes(fitting, len(tree)) if fitting else None)


def sure_tokens(marginals: Tensor) -> list[tuple[int, float]]:
    """For each of the K places of q [K, V], the likeliest token and its probability."""
    best = marginals.max(-1)
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


SHOWN = 3  # tokens shown for each place


class ProbedTreeDrafter(ProbingDrafter):
    """Drafts a tree of the likeliest paths through the predicted laws. Probes stand behind the nodes at which the step
    is likeliest to end, because only the probes behind the last accepted node can predict the next draft."""

    family = "heads"
    size_option, usual_size = "budget", 4
    trial = {"budget": 3, "asked": 2}
    probes_are: ClassVar[str]
    """The name of the probe rows, for the page."""

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
        """The nodes at which the step is likeliest to end, by the q of the tree, the likeliest first. A step ends at a
        node if the node is reached and none of its children is accepted."""
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
