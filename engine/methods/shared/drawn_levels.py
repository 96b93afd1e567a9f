"""Siblings drawn without replacement, the same number under every node of a level.

Recursive Speculative Decoding with constant branching factors (RSD-C), Jeon et al. 2024.
"""

from engine.core.exhibits import Table, Token
from engine.core.tree import ROOT
from engine.methods.shared.levels import SOURCE, ShapedDrafter, favourites, shape_option


class DrawnLevels(ShapedDrafter):
    """The Gumbel-top-k trick draws k siblings without replacement in the order of their perturbed
    log-probability. The same law comes from k draws one after another, each from q without the
    tokens drawn before. Siblings are drawn here in this second way, the next draw of a whole level
    at once.

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
        tree.exhibits.append(
            Table(
                title="Siblings after the last token",
                columns=("draw", "token", "q", "q without those before"),
                rows=rows,
                note=""
                if self.sampling.greedy
                else "Every draw leaves its token out of the next one, so that no guess is wasted twice.",
            )
        )
