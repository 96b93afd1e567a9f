"""Base class of drafters with several heads on the target's last hidden state.

The target's own head reads the state at position t, after the final norm, and gives the root, at t + 1. Head k (from 0)
drafts the token at t + 2 + k. The tree has a fixed shape. It follows from how often each rank of each head's choices
was right when the heads were measured. No token is drawn, so the tree is judged one-hot and is exact under every exact
rule.
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
"""A head's q [V], on the host, and its best tokens, the best first."""


class HeadsDrafter(Drafter):
    """Base class of drafters with heads. heads: the part, with a length and with a row of ``accuracies`` for each
    head."""

    family = "heads"
    draw_kinds = ("one_hot",)
    options = (tree_size(256),)
    size_option, usual_size = "budget", 16
    trial = {"budget": 4}
    note: ClassVar[str]
    """The note below the table of choices."""

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
        """Remember the last of these states. features: [R, H], of the tokens that the target has read since the last
        call."""
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
        """The shape of a tree up to this depth, for the heads whose positions are still open. A forced token takes the
        position of a head."""
        width = self.target.vocab_size
        open_heads = self.heads.accuracies[self._first : self._first + max_depth]
        costs = tuple(tuple(cost(share) for share in row[:width]) for row in open_heads)
        return cheapest_shape(costs, self.settings["budget"])

    @abstractmethod
    def _after(self, head: int, paths: Sequence[Sequence[int]], count: int) -> Sequence[Choices]:
        """The choices of head number ``head`` after each path, each with at least the ``count`` best tokens. paths: the
        tokens after the last state, the root first; all paths have the same length."""

    def _choices(self, hidden: Tensor, project: nn.Module, count: int) -> list[Choices]:
        """The choices of a head for R states: q, and the ``count`` best tokens. hidden: [R, H]. project: hidden states
        -> logits [R, V]. Raises UserError for NaN.

        The tokens are ranked by logits, not by q. Top-k and top-p set the q of some tokens to 0, which the target may
        still accept, and all these tokens would rank equal.
        """
        logits = project(hidden)
        if not self.target.asynchronous:
            refuse_nan(logits, self.title)
        laws = display_distribution(logits, self.sampling).cpu()
        best = logits.topk(min(count, logits.shape[-1])).indices.tolist()
        return list(zip(laws, best, strict=True))

    def _spoken(self, kept: Kept) -> list[Tensor]:
        """The heads' laws q [V] at each depth along the kept path, the root's first."""
        laws = (kept.tree.shown_law(place) for place in (ROOT, *kept.path))
        return [law for law in laws if law is not None]

    def _table(self, spoken: Sequence[Tensor], written: Sequence[int]) -> Table:
        """The table of choices: for each head its first choices of positive q, the token that was written in its place,
        and the rank of that token."""
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
    """For each level of a shape, a dictionary: parent's place -> places of its children. Parents are in the order of
    their places."""
    depths: list[int] = []
    levels: list[dict[int, list[int]]] = []
    for place, (parent, _) in enumerate(shape):
        depths.append(0 if parent == ROOT else depths[parent] + 1)
        if depths[-1] == len(levels):
            levels.append({})
        levels[depths[-1]].setdefault(parent, []).append(place)
    return levels
