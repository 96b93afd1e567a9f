"""The common base of drafters with several heads on the target's last hidden state.

The state after the final norm at t gave the token at t + 1, the root; head k (from 0) drafts the token at t + 2 + k.
The tree has a fixed shape, which follows from how often each rank of each head's choices was right when the heads were
measured. Nothing is drawn, so the tree is judged one-hot and is exact under every exact rule.
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

SHOWN = 4  # choices of a head in the table

Choices = tuple[Tensor, list[int]]
"""q [V] of a head, on the host, and its best tokens."""


class HeadsDrafter(Drafter):
    """heads: ``len(heads)`` is their number; ``heads.accuracies`` has an entry for each."""

    family = "heads"
    draw_kinds = ("one_hot",)
    options = (tree_size(256),)
    size_option, usual_size = "budget", 16
    trial = {"budget": 4}
    note: ClassVar[str]
    """The note below the table: what these heads know, and what they cannot know."""

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
        self._state: Tensor | None = None  # [H], of the last token that the target has read
        self._read = 0
        self._keep(start.features)

    def observe(self, kept: Kept) -> None:
        spoken = self._spoken(kept)
        if spoken:
            kept.tree.exhibits.append(self._table(spoken, kept.tokens))
        self._keep(kept.features)

    def _keep(self, features: Tensor) -> None:
        """features: [R, H] of the tokens that were read since the last call."""
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
        """The shape for the heads whose positions are still open; a forced token closes its head's position."""
        width = self.target.vocab_size
        open_heads = self.heads.accuracies[self._first : self._first + max_depth]
        costs = tuple(tuple(cost(share) for share in row[:width]) for row in open_heads)
        return cheapest_shape(costs, self.settings["budget"])

    @abstractmethod
    def _after(self, head: int, paths: Sequence[Sequence[int]], count: int) -> Sequence[Choices]:
        """A head's choices after each of these paths, at least its ``count`` best tokens. paths: tokens
        after the state, the root first; all have the same length."""

    def _choices(self, hidden: Tensor, project: nn.Module, count: int) -> list[Choices]:
        """hidden: [R, H] of heads, project: H -> V. Raises UserError for NaN.

        The tokens are ranked by the logits: top-k and top-p, which hold for the law that is shown, cut tokens of the
        head, while the target may well keep them, and would leave all these tokens equal.
        """
        logits = project(hidden)
        if not self.target.asynchronous:
            refuse_nan(logits, self.title)
        laws = display_distribution(logits, self.sampling).cpu()
        best = logits.topk(min(count, logits.shape[-1])).indices.tolist()
        return list(zip(laws, best, strict=True))

    def _spoken(self, kept: Kept) -> list[Tensor]:
        """The heads' distributions for each depth, along the kept path."""
        laws = (kept.tree.shown_law(place) for place in (ROOT, *kept.path))
        return [law for law in laws if law is not None]

    def _table(self, spoken: Sequence[Tensor], written: Sequence[int]) -> Table:
        """Each head's first choices that are not cut, the token that was written in its place, and its rank."""
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
    """One dictionary per level, parent -> its children's places; parents are in the order of their places."""
    depths: list[int] = []
    levels: list[dict[int, list[int]]] = []
    for place, (parent, _) in enumerate(shape):
        depths.append(0 if parent == ROOT else depths[parent] + 1)
        if depths[-1] == len(levels):
            levels.append({})
        levels[depths[-1]].setdefault(parent, []).append(place)
    return levels
