"""Momentum decoding, judged greedily: the token with the best score is written, and a drafted token that equals it is
kept.

Lan et al., Momentum Decoding: Open-ended Text Generation As Graph Exploration (2022).
"""

from engine.core.exhibits import Later, Table, Token
from engine.core.options import number, whole
from engine.core.rule import Case, Verdict
from engine.methods.momentum.resistance import Resistance
from engine.rules.greedy import Greedy


class Momentum(Greedy):
    """Because the score of a token depends on the whole text before it, scores are computed along each path of the
    tree; the logits of a draft model are weighed by the same scores. With any drafter the text is that of momentum
    decoding, token for token. It differs from the target's greedy text."""

    key = "momentum"
    title = "Momentum decoding"
    summary = "writes the token with the best p less a resistance to repetition (temperature 0); another law than greedy decoding"
    law = "momentum decoding"
    exact_kinds = frozenset()
    options = (
        whole("candidates", 5, 1, 50).meaning("How many of the likeliest tokens are weighed."),
        number("alpha", 0.2, 0.0, 1.0, "alpha").meaning(
            "What each repeated token in a row costs, in units of probability."
        ),
    )
    sentences = {
        "momentum.kept": "{token} had the best score, p less its resistance, just as was drafted: accepted.",
        "momentum.refused": "{final} had a better score, p less its resistance, than {token}: rejected.",
        "recovered": "No drafted token had the best score here, so the target’s own went into the text: {final}.",
        "bonus": "Every token on this path was kept, and the same pass of the target also gave the token after them: {final}.",
    }

    def weighing(self, target, prompt):
        settings = self.settings
        self._resistance = Resistance(prompt, settings["candidates"], settings["alpha"])
        return self._resistance

    def judge(self, case: Case) -> Verdict:
        verdict = super().judge(case)
        path = [case.tree.tokens[node] for node in verdict.accepted]
        free = case.bound.free[verdict.walk[-1] + 1]
        scores = self._resistance.scores(free, path)
        verdict.exhibits.append(Later(lambda: self._table(scores)))
        return verdict

    def _table(self, scores: list[tuple[int, float, int, float]]) -> Table:
        columns = ["token", "p", "repeats a run of", "score"]
        rows = [[Token(token), p, depth or None, score] for token, p, depth, score in scores[:12]]
        note = f"Score: p less {self.settings['alpha']:g} for each token of the longest run that would be repeated. The best score is written."
        return Table("Candidates after the kept path", columns, rows, note=note)
