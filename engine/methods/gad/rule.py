"""Keep tokens that the target finds nearly as likely as its likeliest token: lossy.

The rule of GAD++ (Ge et al., Lossless Acceleration for Seq2seq Generation with Aggressive Decoding, 2022): a drafted
token is kept when it is among the target's ``beta`` likeliest and its log-probability is at most ``tau`` below that of
the likeliest.
"""

from torch import Tensor

from engine.core.options import number, whole
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.rules.matching import keep_while, law_shown, show_judged


class TopBeta(Verifier):
    """Among siblings, the first one that the rule allows is kept. If it allows none, the target writes its own token.

    At temperature 0 the probabilities are those of the plain softmax; with ``beta`` 1 the text is then the target's
    own. The rule is still declared lossy, because the text is the target's own only with this option.
    """

    key = "gad"
    title = "Top candidates (lossy)"
    summary = (
        "keeps a token among the target's few likeliest whose probability is near the likeliest one's; "
        "lossy: the text differs from the target's own"
    )
    options = (
        whole("beta", 3, 1, 50, "candidates").meaning(
            "How many of the target's likeliest tokens may stay."
        ),
        number("tau", 1.0, 0.0, 50.0, "tolerance").meaning(
            "Most that the token's log-probability may be below the likeliest one's."
        ),
    )
    exact_kinds = frozenset()
    sentences = {
        "gad.kept": "The target gave {token} the probability {p}, which is near enough to its favourite: accepted. "
        "(A lossy rule: the target might have written another token.)",
        "gad.refused": "The target gave {token} the probability {p}; the token is not among its likeliest, or too far "
        "below the first of them: rejected.",
        "recovered": "No drafted token was near enough here, so the target wrote its own: {final}.",
        "bonus": "The whole path was kept, and the target wrote the next token: {final}.",
    }
    trial = {"beta": 2, "tau": 1.0}

    def judge(self, case: Case) -> Verdict:
        p, beta, tau = law_shown(case), self.settings["beta"], self.settings["tau"]

        def near_enough(p, token: int) -> bool:
            rank, gap = standing(p, token)
            return rank <= beta and gap <= tau

        def row(entry: Judgement) -> list:
            tree = case.tree
            rank, gap = standing(p[tree.parents[entry.node] + 1], tree.tokens[entry.node])
            return [rank, round(gap, 3), "kept" if entry.accept else "refused"]

        verdict = keep_while(case, self.key, p, near_enough)
        columns = ["Token", "Rank by p", "Log-probability below the first", "Outcome"]
        show_judged(case, verdict, f"Rank at most {beta}, gap at most {tau:g}", columns, row)
        return verdict


def standing(p: Tensor, token: int) -> tuple[int, float]:
    """Return the rank of a token in p [V], 1 for the likeliest, and by how much its log p is below that of the
    likeliest."""
    own, best = p[token], p.max()
    rank = int((p > own).sum()) + 1
    gap = float((best / own).log()) if own > 0 else float("inf")
    return rank, gap
