"""Block verification: a drafted chain is judged as a whole, from its end.

Sun et al., Block Verification Accelerates Speculative Decoding (2025).
"""

from engine.core.rule import Case, Judgement, Verdict
from engine.errors import UserError
from engine.rules.leaf_to_root import SENTENCES, LeafToRoot


class Block(LeafToRoot):
    """A coin is tossed for every depth, the deepest first. The deepest token whose coin falls below its chance h ends
    the kept chain, so a token whose own coin failed may be saved by a later token. With w as in ``LeafToRoot`` and the
    sum S = sum of (w p - q)+ after the token, h is w for the last token and S / (S + 1 - w) for the others.

    No exact rule that sees only the chain keeps more of it on average. For tokens that were not drawn, where q is 1,
    the rule keeps as many as rejection sampling does.

    Kept tokens above the kept leaf are kept for sure (``accept`` is 1), but show their own coin. Their judgement's rule
    is ``saved`` where that coin failed and ``within`` where it did not.
    """

    key = "block"
    title = "Block verification"
    summary = "weighs a drafted chain from its end: a later token can save an earlier one"
    shapes = frozenset({"chain"})
    sentences = {
        **SENTENCES,
        "saved.sure": "Its own coin failed: it fell at {coin}. But a chain is kept as a whole, and the coin of a later token "
        "held, which saved {token}: accepted.",
        "within.sure": "A chain is kept as a whole, and the coin of a later token held. That of {token}, {coin}, would have "
        "been enough as well: accepted.",
    }
    note = "A coin for every depth, the last token first. The first that falls below its chance keeps the chain up to there."

    def judge(self, case: Case) -> Verdict:
        if any(len(draws) > 1 for draws in case.tree.draws.values()):
            raise UserError(f"The verifier {self.key} judges chains, and this draft branches.")
        return super().judge(case)

    def above(self, node, weight, trial):
        trial.refuse_attempt()
        chance, coin = trial.weight, self._case.chance.toss()
        rule, words = ("within", "held too") if coin < chance else ("saved", "failed, saved")
        self.show(node, weight, chance, coin, words)
        return Judgement(node, rule, None, None, 1.0, coin)
