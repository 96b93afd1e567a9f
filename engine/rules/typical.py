"""Keep tokens that the target finds typical: lossy.

Cai et al., Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads (2024), section 2.3.1.
"""

import math

from torch import Tensor

from engine.core.exhibits import Table, Token
from engine.core.options import number
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.core.tree import ROOT
from engine.rules.matching import verdict_of

SHOWN = 12  # the most rows of the table


class Typical(Verifier):
    """A token is typical if p(token) > min(epsilon, delta * exp(-H)), where H is the entropy of p at its position, in
    nats: where the target is unsure, a small probability is enough.

    The longest path of typical tokens is kept; among several longest paths, the likeliest. The token after the path is
    the target's favourite, never a draw, as in the paper. p has temperature and truncation applied; at temperature 0
    only the favourite is typical, and the rule keeps the same tokens as the greedy rule.

    Judgements show p of the tokens on the kept path and of refused tokens beside it; accept is 1 or 0, and no coin is
    tossed. A typical token that is not on the kept path has no judgement.
    """

    key = "typical"
    title = "Typical acceptance (lossy)"
    summary = (
        "keeps the longest path of typical tokens, those with p above a threshold that falls as the target's "
        "entropy rises; lossy: above temperature 0 the text is not distributed as the target's own"
    )
    options = (
        number("epsilon", 0.09, 0.0, 1.0, "epsilon").meaning(
            "A token with more probability than this is typical everywhere."
        ),
        number("delta", 0.3, 0.0, 1.0, "delta").meaning(
            "Share of exp(-entropy) that is enough where the target is unsure."
        ),
    )
    exact_kinds = frozenset()
    sentences = {
        "typical.kept": "The target gave {token} the probability {p}, above the threshold of typical tokens: accepted. (A "
        "lossy rule: no coin decides how often this token comes.)",
        "typical.refused": "The target gave {token} the probability {p}, below the threshold of typical tokens: rejected.",
        "recovered": "No token drafted here is typical, so the target wrote its favourite: {final}.",
        "bonus": "Everything on the path is typical, and the target added its favourite: {final}.",
    }

    def judge(self, case: Case) -> Verdict:
        tree = case.tree
        p = case.p.double().cpu()
        thresholds = self.thresholds(p)
        chances = [
            float(p[tree.parents[node] + 1, token]) for node, token in enumerate(tree.tokens)
        ]
        typical = [
            chance > float(thresholds[tree.parents[node] + 1])
            for node, chance in enumerate(chances)
        ]
        accepted = _longest(tree.parents, tree.depths, chances, typical)
        walk = [ROOT, *accepted]
        judgements = []
        for place, kept in zip(walk, [*accepted, None], strict=True):
            for node in tree.children(place):
                if node == kept or not typical[node]:
                    accept = float(node == kept)
                    judgements.append(Judgement(node, self.key, chances[node], None, accept, None))
        token, final = int(case.p[walk[-1] + 1].argmax()), "bonus"
        if tree.children(walk[-1]):
            final = "recovered"
        shown = [self._table(case, walk, chances, thresholds)] if len(tree) else []
        return verdict_of(tree, walk, judgements, token, final, exhibits=shown)

    def thresholds(self, p: Tensor) -> Tensor:
        """p [N, V] -> the threshold of typical tokens in each row, [N]."""
        entropy = -(p * p.clamp(min=1e-300).log()).sum(-1)
        return (self.settings["delta"] * (-entropy).exp()).clamp(max=self.settings["epsilon"])

    def _table(
        self, case: Case, walk: list[int], chances: list[float], thresholds: Tensor
    ) -> Table:
        """The exhibit's table: one row for each drafted token whose parent is on the walk."""
        tree, rows = case.tree, []
        for place in walk:
            threshold = float(thresholds[place + 1])
            for node in tree.children(place):
                kept = "kept" if node in walk else "a longer path"
                outcome = kept if chances[node] > threshold else "refused"
                rows.append([Token(tree.tokens[node]), chances[node], threshold, outcome])
        note = "Lossy: the threshold is lower where the target is unsure, and the longest path of typical tokens is kept."
        columns = ["token", "target's p", "threshold", "outcome"]
        return Table("Typical or not", columns, rows[:SHOWN], note=note)


def _longest(
    parents: list[int], depths: list[int], p: list[float], typical: list[bool]
) -> list[int]:
    """The longest path of typical nodes; among several longest paths, the likeliest."""
    reached = {ROOT: (0, 0.0)}  # depth, and log p of the path
    for node, parent in enumerate(parents):
        if typical[node] and parent in reached:
            reached[node] = (depths[node], reached[parent][1] + math.log(p[node]))
    last, path = max(reached, key=reached.__getitem__), []
    while last != ROOT:
        path.append(last)
        last = parents[last]
    return path[::-1]
