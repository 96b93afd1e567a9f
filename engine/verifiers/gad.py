"""Keep what the target finds nearly as good as its favourite: lossy.

The rule of GAD++ (Ge et al., Lossless Acceleration for Seq2seq Generation with Aggressive Decoding,
2022): a drafted token may stay when it is among the target's ``beta`` likeliest and its log-probability
is at most ``tau`` below the likeliest one's.
"""

from torch import Tensor

from engine.exhibits import Table, Token
from engine.options import Option
from engine.sampling import display_distribution
from engine.tree import ROOT
from engine.verifiers.base import Case, Judgement, Verdict, Verifier, statuses


class TopBeta(Verifier):
    """Of several siblings the first that may stay is kept. Where none may the target writes its own token.

    At temperature 0 the probabilities are those of the plain softmax. With ``beta`` 1 the text is then the
    target's own; the rule is called lossy all the same, because its options decide.
    """

    key = "gad"
    title = "Top candidates (lossy)"
    summary = (
        "keeps a token among the target's few likeliest whose probability is near the likeliest one's; "
        "lossy: the text differs from the target's own"
    )
    options = (
        Option("beta", "int", 3, "How many of the target's likeliest tokens may stay.", 1, 50),
        Option(
            "tau",
            "float",
            1.0,
            "Most that the token's log-probability may be below the likeliest one's.",
            0.0,
            50.0,
            label="tolerance",
        ),
    )
    exact_kinds = frozenset()
    sentences = {
        "gad.kept": "The target gave {token} the probability {p}, which is near enough to its favourite: accepted. "
        "(A lossy rule: the target might have written another token.)",
        "gad.refused": "The target gave {token} the probability {p}: not among its likeliest tokens, or too far "
        "below the first of them.",
        "recovered": "Here the draft and the target part, and the target wrote its own token: {final}.",
        "bonus": "The whole path was kept, and the target wrote the next token: {final}.",
    }
    trial = {"beta": 2, "tau": 1.0}

    def judge(self, case: Case) -> Verdict:
        tree, walk = case.tree, [ROOT]
        greedy = case.sampling.greedy
        p = (display_distribution(case.logits, case.sampling) if greedy else case.p).cpu()
        judgements: list[Judgement] = []
        rows: list[list] = []
        while True:
            place = walk[-1]
            children, kept = tree.children(place), None
            for node in children:
                rank, gap = standing(p[place + 1], tree.tokens[node])
                near = rank <= self.settings["beta"] and gap <= self.settings["tau"]
                found = float(p[place + 1, tree.tokens[node]])
                judgements.append(Judgement(node, self.key, found, None, float(near), None))
                outcome = "kept" if near else "refused"
                rows.append([Token(tree.tokens[node]), rank, round(gap, 3), outcome])
                if near:
                    kept = node
                    break
            if kept is None:
                break
            walk.append(kept)
        accepted, place = walk[1:], walk[-1]
        return Verdict(
            accepted=accepted,
            status=statuses(len(tree), accepted, judgements),
            judgements=judgements,
            final_token=case.chance.draw(case.p[place + 1], case.position + len(accepted)),
            final="recovered" if children else "bonus",
            walk=walk,
            exhibits=[self._table(rows)] if rows else [],
        )

    def _table(self, rows: list[list]) -> Table:
        beta, tau = self.settings["beta"], self.settings["tau"]
        return Table(
            title=f"Rank at most {beta}, gap at most {tau:g}",
            note="Lossy: a token may stay that the target would not have written itself.",
            columns=["Token", "Rank by p", "Log-probability below the first", "Outcome"],
            rows=rows,
        )


def standing(p: Tensor, token: int) -> tuple[int, float]:
    """The rank of a token in p [V], 1 for the likeliest, and how far its log p is below the likeliest one's."""
    own, best = p[token], p.max()
    rank = int((p > own).sum()) + 1
    gap = float((best / own).log()) if own > 0 else float("inf")
    return rank, gap
