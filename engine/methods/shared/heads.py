"""Base class of drafters with several heads on the target's last hidden state.

From the state at position t, after the final norm, the target's own head gives the root, at t + 1. Head k (from 0)
drafts the token at t + 2 + k. The shape of the tree is fixed before drafting: it follows from how often the first,
second, ... choice of each head was right when the heads were measured. No token is drawn, so the tree is judged one-hot
and is exact under every exact rule.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from engine.core.drafter import Drafter, Kept, Start, tree_size
from engine.core.exhibits import Table, Token
from engine.core.finite import refuse_nan
from engine.core.sampling import display_distribution
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.fixed_shape import Shape, cheapest_shape
from engine.methods.shared.head_ranks import cost
from engine.model.language_model import LanguageModel

SHOWN = 4  # choices of each head in the table

Choices = tuple[Tensor, list[int]]
"""A head's q [V], on the host, and the head's likeliest tokens, the likeliest first."""


class HeadsDrafter(Drafter):
    """Base class of drafters with heads. heads: the set of heads; it has a length, and a row of ``accuracies`` for each
    head."""

    family = "heads"
    draw_kinds = ("one_hot",)
    options = (tree_size(256),)
    size_option, usual_size = "budget", 16
    trial = {"budget": 4}
    note: ClassVar[str]
    """The note below the table of each head's choices."""

    def __init__(self, settings, heads, target: LanguageModel) -> None:
        super().__init__(settings)
        self.heads, self.target = heads, target
        self.feature_layers = (target.layers,)

    @classmethod
    def build(cls, settings, models):
        (role,) = cls.needs
        return cls(settings, models.part(role), models.target)

    def begin(self, start: Start) -> None:
        super().begin(start)
        self._state: Tensor | None = None  # [H], at the last token that the target has read
        self._read = 0
        self._keep(start.features)

    def observe(self, kept: Kept) -> None:
        spoken = self._spoken(kept)
        if spoken:
            kept.tree.exhibits.append(self._table(spoken, kept.tokens))
        self._keep(kept.features)

    def _keep(self, features: Tensor) -> None:
        """Store the last of these states. features: the target's states [R, H] of the tokens over which it was run
        since the previous call."""
        self._read += len(features)
        if len(features):
            self._state = features[-1]

    @torch.no_grad()
    def propose(self, context, max_depth):
        tree = DraftTree()
        if self._state is None:
            return tree  # the prompt has one token, and the target has read nothing yet
        unread = list(context[self._read :])  # the root and the forced tokens after it
        self._first = len(unread) - 1
        nodes, shape = {ROOT: ROOT}, self._shape(max_depth)
        for depth, children in enumerate(by_level(shape)):
            head = self._first + depth
            above = [tree.path(nodes[parent]) for parent in children]
            paths = [[*unread, *(tree.tokens[node] for node in path)] for path in above]
            said = self._after(head, paths, max(map(len, children.values())))
            for places, (law, best) in zip(children.values(), said, strict=True):
                for place in places:
                    parent, rank = shape[place]
                    source = f"head {head + 1}"
                    nodes[place] = tree.draw(nodes[parent], best[rank], law=law, source=source)
        return tree

    def _shape(self, max_depth: int) -> Shape:
        """Return the shape of a tree up to this depth, for the heads whose positions are not written yet. Each forced
        token after the root fills the position of one head."""
        width = self.target.vocab_size
        open_heads = self.heads.accuracies[self._first : self._first + max_depth]
        costs = tuple(tuple(cost(share) for share in row[:width]) for row in open_heads)
        return cheapest_shape(costs, self.settings["budget"])

    @abstractmethod
    def _after(self, head: int, paths: Sequence[Sequence[int]], count: int) -> Sequence[Choices]:
        """Return the choices of head number ``head`` after each path, each with at least ``count`` tokens. paths: for
        each path, the tokens after the position of the stored state, the root first; all paths have the same length."""

    def _choices(self, hidden: Tensor, project: nn.Module, count: int) -> list[Choices]:
        """Return the choices of a head for R hidden states: q, and the ``count`` best tokens. hidden: [R, H]. project:
        the function from hidden states to logits [R, V]. Raises UserError for NaN.

        The tokens are ranked by logits, not by q. Top-k and top-p set q to 0 for tokens that the target may still
        accept, and then all these tokens would have the same rank.
        """
        logits = project(hidden)
        if not self.target.asynchronous:
            refuse_nan(logits, self.title)
        laws = display_distribution(logits, self.sampling).cpu()
        best = logits.topk(min(count, logits.shape[-1])).indices.tolist()
        return list(zip(laws, best, strict=True))

    def _spoken(self, kept: Kept) -> list[Tensor]:
        """Return the q [V] of the heads along the accepted path, beginning with that of the root's children."""
        laws = (kept.tree.shown_law(place) for place in (ROOT, *kept.path))
        return [law for law in laws if law is not None]

    def _table(self, spoken: Sequence[Tensor], written: Sequence[int]) -> Table:
        """Return the table of choices. For each head it shows the first choices with positive q, the token that was
        written at the head's position, and the rank of this token among the head's choices."""
        rows = []
        for depth, law in enumerate(spoken):
            token = written[depth] if depth < len(written) else None
            values, tokens = law.topk(min(SHOWN, len(law)))
            best = tokens[values > 0].tolist()
            rows.append(
                [
                    f"head {self._first + depth + 1}",
                    *map(Token, best),
                    *[None] * (SHOWN - len(best)),
                    None if token is None else Token(token),
                    None if token is None else int((law > law[token]).sum()) + 1,
                ]
            )
        columns = ["head", *(f"{rank + 1}." for rank in range(SHOWN)), "written", "its rank"]
        return Table("Choices of each head", columns, rows, note=self.note)


def by_level(shape: Shape) -> list[dict[int, list[int]]]:
    """Return one dictionary for each level of a shape: parent -> children, as indices of nodes in the shape. The
    parents are in the order of their indices."""
    depths: list[int] = []
    levels: list[dict[int, list[int]]] = []
    for place, (parent, _) in enumerate(shape):
        depths.append(0 if parent == ROOT else depths[parent] + 1)
        if depths[-1] == len(levels):
            levels.append({})
        levels[depths[-1]].setdefault(parent, []).append(place)
    return levels
