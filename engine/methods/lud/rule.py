"""Keep every drafted token unchecked: lossy.

Sun et al., "Decoding at the Speed of Thought: Harnessing Parallel Decoding of Lexical Units for LLMs" (2024).
"""

from engine.core.exhibits import Table, Token
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.rules.matching import keep_while, law_shown


class Unchecked(Verifier):
    """At each position, the first child that the constraint on the text allows is kept, whatever its p.

    Judgements show p (at temperature 0 the plain softmax) and 1 as the chance of acceptance; no coin is tossed.
    """

    key = "lud"
    title = "Unchecked (lossy)"
    summary = (
        "keeps every drafted token without asking the target; lossy: the text differs from the "
        "target's own"
    )
    exact_kinds = frozenset()
    sentences = {
        "lud.kept": "{token} was kept unchecked; the target, which read it only afterwards, gives it the "
        "probability {p}. (A lossy rule: the target might have written another token.)",
        "lud.refused": "{token} was left out: the constraint on the text forbids it here.",
        "recovered": "The target wrote its own token: {final}.",
        "bonus": "After the unchecked tokens the target wrote its own: {final}.",
    }

    def judge(self, case: Case) -> Verdict:
        p = law_shown(case)
        verdict = keep_while(case, self.key, p, lambda p, token: True)
        if verdict.accepted:
            verdict.exhibits.append(self._unchecked(case, verdict.judgements, p))
        return verdict

    def _unchecked(self, case: Case, judgements: list[Judgement], p) -> Table:
        tree = case.tree
        rows = []
        for entry in judgements:
            if not entry.accept:
                continue
            best = int(p[tree.parents[entry.node] + 1].argmax())
            token = tree.tokens[entry.node]
            same = "the same" if best == token else Token(best)
            rows.append([Token(token), tree.q[entry.node], entry.p, same])
        note = "Lossy: a token stays although the target might have written another one."
        columns = ["token", "draft's q", "target's p", "target's favourite"]
        return Table("Written unchecked, and the target's own choice", columns, rows, note=note)
