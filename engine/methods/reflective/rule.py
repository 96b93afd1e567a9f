"""Accept by the target's distribution, fused with the distribution that it gives after reflecting on the draft: lossy.

"Think Before You Accept: Semantic Reflective Verification for Faster Speculative Decoding" (2025). The second
distribution comes from probe rows of the same pass (``engine.methods.reflective.drafter``).
"""

from dataclasses import replace

import torch
from torch import Tensor

from engine.core.options import number
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.core.sampling import display_distribution
from engine.rules.greedy import Greedy
from engine.rules.matching import show_judged
from engine.rules.rejection import Rejection
from engine.rules.sentences import GREEDY, REJECTION

_FUSED = " (A lossy rule: p here is fused with the reflection.)"


class Reflective(Verifier):
    """The rule replaces p by (1 - weight) p + weight r, where r is the target's distribution after the reflective
    prompt and a second copy of the draft. With this mixture as p, tokens are accepted by rejection sampling, or by the
    greedy rule at temperature 0. If a pass has no second copy of the draft, p is not changed.

    Temperature and truncation are applied to both p and r; at temperature 0 both are plain softmaxes of the logits.
    Tokens that the constraint on the text forbids stay forbidden. The judgements on the page show the mixture.
    """

    key = "reflective"
    title = "Reflective verification (lossy)"
    summary = (
        "fuses p with what the target says after reflecting on the draft; lossy: the text differs from the "
        "target's own"
    )
    options = (
        number("weight", 0.3, 0.0, 1.0, "weight of the reflection").meaning(
            "Share of the reflection in the fused distribution (0: p itself)."
        ),
    )
    exact_kinds = frozenset()
    sentences = {
        name: words + (_FUSED if "." in name else "")
        for name, words in (GREEDY | REJECTION).items()
    }

    def judge(self, case: Case) -> Verdict:
        probes = case.probe_rows
        if probes is None or not probes.again or case.probes is None:
            return self._judged(case)
        p = _plain(case, case.logits)
        r = _reflected(case, list(probes.again))
        weight = self.settings["weight"]
        fused = (1 - weight) * p + weight * r
        fused = fused / fused.sum(-1, keepdim=True)
        verdict = self._judged(
            replace(case, p=_favourites(fused) if case.sampling.greedy else fused)
        )

        def row(entry: Judgement) -> list:
            tree, node = case.tree, entry.node
            place, token = tree.parents[node] + 1, tree.tokens[node]
            shown = [float(law[place, token]) for law in (p, r, fused)]
            return [*shown, tree.q[node], verdict.status[node]]

        columns = ["token", "p", "after reflecting", "fused", "q", "outcome"]
        show_judged(case, verdict, "p, the reflection, and both fused", columns, row)
        return verdict

    @staticmethod
    def _judged(case: Case) -> Verdict:
        return (Greedy() if case.sampling.greedy else Rejection()).judge(case)


def _plain(case: Case, logits: Tensor) -> Tensor:
    return display_distribution(logits, case.sampling).to(case.p.device)


def _reflected(case: Case, again: list[int]) -> Tensor:
    """Return r [N, V]: the distributions from the second copy of the draft. The constraint is applied before
    truncation, so that allowed tokens always remain. again: the indices of the probe rows of the second copy."""
    forbidden = (case.logits == float("-inf")).to(case.probes.device)
    return _plain(case, case.probes[again].masked_fill(forbidden, float("-inf")))


def _favourites(fused: Tensor) -> Tensor:
    """Return the mixture [N, V] of p and r as one-hot rows, with 1 at the largest entry of each row."""
    return torch.zeros_like(fused).scatter_(-1, fused.argmax(-1, keepdim=True), 1.0)
