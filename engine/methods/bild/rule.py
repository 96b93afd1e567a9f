"""Keep the tokens that the large model finds likely enough: lossy.

Kim et al., Speculative Decoding with Big Little Decoder (2023): the rollback policy.
"""

import math

from engine.core.options import number
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.rules.matching import keep_while, law_shown, show_judged


class BigLittle(Verifier):
    """A token is kept while its distance, -log p (in nats), is at most the rollback threshold.

    At the first token with a larger distance the text is rolled back, and the large model's own token takes its place.
    At temperature 0 p is the plain softmax. In a tree, the first sibling whose distance is small enough is kept.

    No coin is tossed: the chance of acceptance that a judgement shows is 1 or 0.
    """

    key = "bild"
    title = "Big Little rollback (lossy)"
    summary = (
        "keeps a token while the target's -log p of it is at most a threshold; lossy: the text "
        "differs from the target's own"
    )
    options = (
        number("rollback", 2.0, 0.0, 50.0, "rollback threshold").meaning(
            "Roll back to the first token whose distance, -log p of the target, is above this."
        ),
    )
    exact_kinds = frozenset()
    sentences = {
        "bild.kept": "The target gave {token} the probability {p}, near enough for the rollback "
        "threshold: accepted. (A lossy rule: the target might have written another token.)",
        "bild.refused": "The target gave {token} only the probability {p}, farther away than the "
        "rollback threshold allows: the text is rolled back to here.",
        "recovered": "After the rollback the target wrote its own token: {final}.",
        "bonus": "The small model stopped here, and the target wrote the next token: {final}.",
    }

    def judge(self, case: Case) -> Verdict:
        rollback = self.settings["rollback"]

        def near(p, token: int) -> bool:
            return _distance(float(p[token])) <= rollback

        def row(entry: Judgement) -> list:
            q = case.tree.shown_law(case.tree.parents[entry.node])
            sure = None if q is None else float(q.max())
            outcome = "kept" if entry.accept else "rolled back"
            return [sure, entry.p, _distance(entry.p), outcome]

        verdict = keep_while(case, self.key, law_shown(case), near)
        columns = ["draft's confidence", "target's p", "distance -log p", "outcome"]
        show_judged(
            case, verdict, f"Distances, rollback above {rollback:g}", ["token", *columns], row
        )
        return verdict


def _distance(p: float) -> float:
    """Return -log p in nats; infinity for p = 0."""
    return -math.log(p) if p > 0 else math.inf
