"""Keep the tokens that the target would have written itself at temperature 0."""

from engine.core.rule import EVERY_KIND, Case, Verdict, Verifier
from engine.core.sampling import likeliest
from engine.rules.matching import follow
from engine.rules.sentences import GREEDY


class Greedy(Verifier):
    """A child is kept when it is the target's most probable token.

    Exact for any proposal, because nothing is random. Judgements show the one-hot p, 1 or 0.
    """

    key = "greedy"
    title = "Greedy"
    summary = "keeps a token when it is the target's most probable one (temperature 0)"
    exact_kinds = EVERY_KIND
    sentences = GREEDY
    only_greedy = True
    reads_p = False
    same_text = True

    def judge(self, case: Case) -> Verdict:
        if not case.sampling.greedy:
            raise ValueError("the greedy rule is exact at temperature 0 only")
        best = likeliest(case.logits if case.p is None else case.p)
        tokens = case.tree.tokens
        return follow(
            case.tree,
            self.key,
            choose=lambda place, depth: best[place + 1],
            weigh=lambda place, children, token: [
                float(tokens[child] == token) for child in children
            ],
        )
