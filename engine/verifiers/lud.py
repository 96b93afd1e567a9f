"""Keep what was drafted and ask nobody: lossy.

Sun et al., "Decoding at the Speed of Thought: Harnessing Parallel Decoding of Lexical Units for LLMs" (2024).
"""

from engine.exhibits import Table, Token
from engine.sampling import display_distribution
from engine.tree import ROOT
from engine.verifiers.base import Case, Judgement, Verdict, Verifier, statuses


class Unchecked(Verifier):
    """The first child of each place is kept, whatever p says of it.

    Judgements show p (at temperature 0 the plain softmax); accept is 1, and nothing is tossed.
    """

    key = "lud"
    title = "Unchecked (lossy)"
    summary = (
        "keeps every drafted token without asking the target; lossy: the text differs from the "
        "target's own"
    )
    exact_kinds = frozenset()
    sentences = {
        "lud.kept": "{token} was sure enough when it was drafted, so it stands unchecked; reading on, the target "
        "gives it the probability {p}. (A lossy rule: the target might have written another token.)",
        "lud.refused": "{token} was left out.",
        "recovered": "The target wrote its own token: {final}.",
        "bonus": "Behind the tokens that nobody checked the target wrote its own: {final}.",
    }

    def judge(self, case: Case) -> Verdict:
        tree, walk = case.tree, [ROOT]
        greedy = case.sampling.greedy
        p = (display_distribution(case.logits, case.sampling) if greedy else case.p).cpu()
        judgements = []
        while children := tree.children(walk[-1]):
            node = children[0]
            found = float(p[walk[-1] + 1, tree.tokens[node]])
            judgements.append(Judgement(node, self.key, found, None, 1.0, None))
            walk.append(node)
        accepted, place = walk[1:], walk[-1]
        return Verdict(
            accepted=accepted,
            status=statuses(len(tree), accepted, judgements),
            judgements=judgements,
            final_token=case.chance.draw(case.p[place + 1], case.position + len(accepted)),
            final="bonus",
            walk=walk,
            exhibits=[self._unchecked(case, judgements, p)] if judgements else [],
        )

    def _unchecked(self, case: Case, judgements: list[Judgement], p) -> Table:
        tree = case.tree
        rows = []
        for entry in judgements:
            best = int(p[tree.parents[entry.node] + 1].argmax())
            token = tree.tokens[entry.node]
            same = "the same" if best == token else Token(best)
            rows.append([Token(token), tree.q[entry.node], entry.p, same])
        return Table(
            title="Written unchecked, and what the target would have said",
            note="Lossy: a token stays although the target might have written another one.",
            columns=["token", "sure by", "target's p", "target's favourite"],
            rows=rows,
        )
