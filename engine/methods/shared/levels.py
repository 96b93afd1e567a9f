"""Base classes of drafters that grow a tree level by level: the draft model is run over a whole level in one pass."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.exhibits import Table, Token
from engine.core.options import Option, choice
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.draft_model import DraftModelDrafter

SOURCE = "draft model"

SHAPES = (
    *("2", "3", "4", "2-1", "2-2", "4-1", "4-2"),
    *("2-2-1", "2-2-2", "3-1-1", "3-2-1", "3-2-2", "4-2-1"),
    *("2-1-1-1", "2-2-1-1", "2-2-2-1", "2-2-2-2", "3-1-1-1", "4-1-1-1", "4-2-1-1"),
    *("2-1-1-1-1", "2-2-1-1-1", "2-2-2-2-2", "3-2-1-1-1", "4-2-1-1-1"),
)
"""The choices for the branching factors. A choice lists the number of children of each node, for one level after
another."""


def shape_option(usual: str, help_text: str) -> Option:
    """The option ``branching``: one branching factor per level."""
    return choice("branching", usual, SHAPES, "Branching factors").meaning(help_text)


class LevelDrafter(DraftModelDrafter):
    """A drafter that grows its tree level by level.

    The number of levels and the number of a node's children must not depend on a token that was drawn as a child of the
    same node, unless a subclass explains why this is exact.
    """

    family = "tree"

    @property
    @abstractmethod
    def levels(self) -> int:
        """The number of levels of a full tree."""

    @abstractmethod
    def grow(self, tree: DraftTree, parents: Sequence[int], q: Tensor, level: int) -> list[int]:
        """Draft the children of these parents. Returns the nodes that are the parents of the next level.

        q: [len(parents), V], the draft model's distribution after each parent. level: 0 for the root's children.
        """

    def show(self, tree: DraftTree) -> None:
        """Add exhibits to a finished tree."""

    def propose(self, context, max_depth):
        tree, parents = DraftTree(), [ROOT]
        q = self._reader.read(context)[None]
        levels = min(self.levels, max_depth)
        for level in range(levels):
            parents = self.grow(tree, parents, q, level)
            if level == levels - 1 or not parents:
                break
            q = self._read(tree, parents)
        self.show(tree)
        return tree

    def _read(self, tree: DraftTree, nodes: Sequence[int]) -> Tensor:
        tokens = [tree.tokens[node] for node in nodes]
        return self._reader.expand(nodes, tokens, [tree.parents[node] for node in nodes])


class ShapedDrafter(LevelDrafter):
    """A drafter whose tree has the same number of children under every node of a level."""

    shape = "levels"

    @property
    def levels(self) -> int:
        return len(self.branching)

    @property
    def branching(self) -> list[int]:
        return [int(count) for count in self.settings["branching"].split("-")]

    def grow(self, tree, parents, q, level):
        count = self.branching[level]
        tokens = self.draws(q, count)
        for row, parent in enumerate(parents):
            self.place(tree, parent, q[row], tokens[row])
        return [child for parent in parents for child in tree.children(parent)]

    @abstractmethod
    def draws(self, q: Tensor, count: int) -> list[list[int]]:
        """Return, for each row of q [R, V], up to ``count`` different tokens, in the order in which they are drawn."""

    @abstractmethod
    def place(self, tree: DraftTree, parent: int, q: Tensor, tokens: Sequence[int]) -> None:
        """Add these tokens to the tree as children of ``parent``. q: [V], the draft model's distribution after the
        parent."""


def favourites(q: Tensor, count: int) -> list[list[int]]:
    """Return the ``count`` likeliest tokens of each row of q [R, V], the likeliest first; tokens with q = 0 are left
    out."""
    best = q.topk(min(count, q.shape[-1]))
    rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [[t for t, v in zip(*row, strict=True) if v > 0] for row in rows]


def without(q: Tensor, tokens: Sequence[int]) -> Tensor:
    """q [V] with these tokens set to 0 and the rest renormalised, in float64; all zeros if no mass is left."""
    left = q.double().clone()
    left[torch.as_tensor(tokens, dtype=torch.long)] = 0
    mass = left.sum()
    return left / mass if mass > 0 else left


class DrawnLevels(ShapedDrafter):
    """RSD-C: the same number of siblings, drawn without replacement, under every node of a level.

    Recursive Speculative Decoding with constant branching factors, Jeon et al. 2024. In the paper, the Gumbel-top-k
    trick draws k siblings without replacement, in the order of their perturbed log-probabilities. Their joint law is
    that of k successive draws, each from q without the tokens drawn before. Here siblings are drawn by successive
    draws; each draw is made for all nodes of a level at once.

    In greedy decoding the siblings are the k likeliest tokens, judged one-hot.
    """

    draw_kinds = ("without_replacement",)
    options = (
        shape_option("3-2-1", "Children of every node, level by level, drawn without replacement."),
    )
    trial = {"branching": "2-1"}

    def draws(self, q, count):
        if self.sampling.greedy:
            return favourites(q, count)
        left = q.double().clone()
        tokens: list[list[int]] = [[] for _ in left]
        for _ in range(count):
            rows = (left.sum(-1) > 0).nonzero().flatten()
            if not len(rows):
                break
            drawn = self.chance.pick(left[rows], self.chance.uniforms(len(rows)))
            left[rows, drawn] = 0
            for row, token in zip(rows.tolist(), drawn.tolist(), strict=True):
                tokens[row].append(token)
        return tokens

    def place(self, tree, parent, q, tokens):
        kind = "one_hot" if self.sampling.greedy else "without_replacement"
        for token in tokens:
            tree.draw(parent, token, kind, q, SOURCE)

    def show(self, tree):
        left, rows = 1.0, []
        for order, node in enumerate(tree.children(ROOT), start=1):
            q = tree.q[node]
            rows.append(
                [order, Token(tree.tokens[node]), q, min(1.0, q / left) if left > 0 else 1.0]
            )
            left -= q
        columns = ("draw", "token", "q", "q without those before")
        note = (
            ""
            if self.sampling.greedy
            else "Every draw leaves its token out of the next one, so that no guess is wasted twice."
        )
        tree.exhibits.append(Table("Siblings after the last token", columns, rows, note=note))
