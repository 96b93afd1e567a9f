"""All siblings but one are the draft model's likeliest tokens; the last one is drawn from the other tokens.

This is the greedy draft construction of Hu et al., Towards Optimal Multi-draft Speculative Decoding (2025).
"""

from engine.core.exhibits import Table, Token
from engine.core.tree import ROOT
from engine.methods.shared.levels import SOURCE, ShapedDrafter, favourites, shape_option, without


class MDSDGreedy(ShapedDrafter):
    """The children of every node are the k - 1 likeliest tokens, and one token drawn from q without them.

    The drawn token is judged first, as the only draw from its law; the fixed tokens are judged afterwards, one-hot. In
    this order rejection sampling keeps one of the children with the probability p(fixed) + the sum of min(p, q') over
    the other tokens. p(fixed) is the sum of p over the fixed tokens, and q' is q without these tokens, scaled to sum to
    1. No rule can keep a child of this draft more often (it is the optimum of the transport problem). If the fixed
    tokens were judged first, a child would be kept less often.

    In greedy decoding all k children are the likeliest tokens.
    """

    key = "mdsd"
    title = "Tree, favourites and one draw"
    summary = "Under every node the draft model's favourites are fixed; only the last is drawn."
    draw_kinds = ("one_hot", "iid")
    options = (
        shape_option(
            "3-2-1", "Children of every node, level by level: all but one fixed, one drawn."
        ),
    )
    trial = {"branching": "2-1"}
    mixed_siblings = True

    def draws(self, q, count):
        """Return the children for each row of q [.., V]. If a child was drawn, it stands first."""
        if self.sampling.greedy:
            return favourites(q, count)
        self._rest = []
        tokens = []
        for row, fixed in zip(q, favourites(q, count - 1), strict=True):
            rest = without(row, fixed)
            self._rest.append(rest)
            drawn = [self.chance.draw(rest)] if float(rest.sum()) > 0 else []
            tokens.append([*drawn, *fixed])
        return tokens

    def place(self, tree, parent, q, tokens):
        rest = None if self.sampling.greedy else self._rest.pop(0)
        for place, token in enumerate(tokens):
            drawn = place == 0 and rest is not None and float(rest[token]) > 0
            kind, law = ("iid", rest) if drawn else ("one_hot", q)
            tree.draw(parent, token, kind, law, SOURCE, float(q[token]))

    def show(self, tree):
        rows = [
            [
                Token(tree.tokens[drawn.node]),
                "drawn" if drawn.kind == "iid" else "fixed",
                tree.q[drawn.node],
            ]
            for drawn in tree.draws.get(ROOT, ())
        ]
        title = "Guesses after the last token, in the order in which they are judged"
        tree.exhibits.append(Table(title, ("token", "how", "q"), rows))
