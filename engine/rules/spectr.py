"""k-sequential selection: every draft is tested against p divided by one common factor.

Sun et al., SpecTr: Fast Speculative Decoding via Optimal Transport (2023).
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from engine.core.exhibits import Exhibit, Table
from engine.core.rule import Case, Verdict
from engine.core.schemes import IID, Scheme, scheme_of
from engine.core.tree import DraftTree, Draw
from engine.rules.rejection import Rejection, SiblingTrial, normalised

BISECTIONS = 24
SHOWN = 4  # the most places of a walk that the exhibit shows


class SpecTr(Rejection):
    """Each of k independent drafts x is kept with probability min(1, p(x) / (rho q(x))).

    p stays unchanged until all k are refused. rho, between 1 and k, is the smallest factor for which the rule is exact.
    With it, one of the drafts is kept at least (1 - 1/e) times as often as under the optimal rule.

    The rule judges independent draws from one q. Other kinds of draws under a node, and a single draw, for which rho is
    1, are judged by rejection sampling.

    The judgements' rule is ``k_sequential``; their p is p(x) / rho.
    """

    key = "spectr"
    title = "SpecTr, k-sequential selection"
    summary = "compares p, divided by one factor, with the q of each of k independent drafts"

    sentences = {
        **Rejection.sentences,
        "k_sequential.kept": "q gave {token} {q}, p over the division factor only {p}, so it was "
        "kept with probability {accept}; the coin fell at {coin}: accepted.",
        "k_sequential.sure": "q gave {token} {q} and p over the division factor no less, {p}, so it "
        "was sure to be kept: accepted.",
        "k_sequential.refused": "q gave {token} {q}, p over the division factor only {p}, so it was "
        "kept with probability {accept}; the coin fell at {coin}: rejected.",
        "k_sequential.replaced": "All drafts here had been refused, so a new token was drawn from "
        "what they leave of p: {final}.",
        "k_sequential.recovered": "All drafts here had been refused, so a new token was drawn from "
        "what they leave of p: {final}.",
    }

    def judge(self, case: Case) -> Verdict:
        self._factors: list[list[float]] = []
        verdict = super().judge(case)
        if self._factors:
            verdict.exhibits.append(_shown(self._factors[:SHOWN]))
        return verdict

    def trial_of(self, p: Tensor, tree: DraftTree, draws: Sequence[Draw]) -> SiblingTrial:
        scheme = scheme_of(tree, draws)
        if scheme is None or scheme.kind != IID or scheme.fixed or scheme.draws < 2:
            return super().trial_of(p, tree, draws)
        trial = KSequentialTrial(p, tree.laws, draws)
        self._factors.append([scheme.draws, trial.factor, trial.expected])
        return trial

    def expected_acceptance(self, p: Tensor, scheme: Scheme) -> float | None:
        if scheme.kind != IID or scheme.fixed or scheme.draws < 2:
            return super().expected_acceptance(p, scheme)
        p, q = normalised(p.double().cpu()), normalised(scheme.q.double().cpu())
        return factor_and_share(p, q, scheme.draws)[1]


class KSequentialTrial(SiblingTrial):
    """The trial of k drafts; see ``SpecTr``. factor: rho. expected: the probability, before the draws, that one of the
    k is kept."""

    def __init__(self, p: Tensor, laws: Sequence[Tensor], draws: Sequence[Draw]) -> None:
        super().__init__(p, laws)
        self._draws = len(draws)
        self._law = draws[0].law
        self.factor, self.expected = factor_and_share(self.p, self.q(self._law), self._draws)

    @property
    def residual(self) -> Tensor | None:
        return self.p if self.refused == self._draws else None

    def weigh(self, token: int, drawn: Draw) -> tuple[str, float, float]:
        q = float(self.q(self._law)[token])
        return "k_sequential", float(self.p[token]) / self.factor, q

    def refuse(self, token: int, rule: str, drawn: Draw) -> None:
        self.refused += 1
        if self.refused == self._draws:
            left = residual(self.p, self.q(self._law), self.factor, self._draws)
            self.p = normalised(left, otherwise=self.p)


def factor_and_share(p: Tensor, q: Tensor, draws: int) -> tuple[float, float]:
    """rho for p and q [V] float64, and the probability that one of the drafts is then kept.

    The rule is exact where 1 - (1 - b)^k <= rho b, with b the probability that a single draft is kept. Bisection finds
    the smallest such rho from above; the result is never below the true value, so the rule is always exact.
    """
    kept = KeptShare(p, q, draws)
    low, high = 1.0, float(draws)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        single = kept.of_one(middle)
        if _one_of(single, draws) <= middle * single:
            high = middle
        else:
            low = middle
    return high, _one_of(kept.of_one(high), draws)


class KeptShare:
    """The sum of min(p / rho, q) over all tokens, for many rho between 1 and k.

    rho matters only for tokens whose p / q also lies between 1 and k. These are sorted by p / q and summed once, so
    that each rho takes one search among them.
    """

    def __init__(self, p: Tensor, q: Tensor, draws: int) -> None:
        target, drawn = p.numpy(), q.numpy()
        low, high = target <= drawn, target >= draws * drawn
        between = np.flatnonzero(~(low | high))
        ratios = target[between] / drawn[between]
        order = np.argsort(ratios)
        self._ratios = ratios[order].tolist()
        below, above = target[between][order], drawn[between][order]
        self._divided = [*accumulate([float(target[low].sum()), *below.tolist()])]
        self._whole = [*accumulate([float(drawn[high & ~low].sum()), *above[::-1].tolist()])][::-1]

    def of_one(self, rho: float) -> float:
        """The probability that a single draft is kept with this rho."""
        place = bisect_right(self._ratios, rho)
        return self._divided[place] / rho + self._whole[place]


def residual(p: Tensor, q: Tensor, factor: float, draws: int) -> Tensor:
    """Weights [V] of the next token after all drafts were refused."""
    kept = torch.minimum(p / factor, q)
    single = float(kept.sum())
    if single <= 0:
        return p
    return (p - kept * (_one_of(single, draws) / single)).clamp_(min=0)


def _one_of(chance: float, draws: int) -> float:
    """The probability that at least one of ``draws`` independent events happens, each of which has probability
    ``chance``."""
    return 1.0 if chance >= 1 else -math.expm1(draws * math.log1p(-chance))


def _shown(factors: Sequence[Sequence[float]]) -> Exhibit:
    columns = ("place", "drafts", "division factor", "chance that one is kept")
    rows = [[place, *row] for place, row in enumerate(factors, start=1)]
    note = "p is divided by the factor before it is compared with q, so that the first draft leaves the others a chance."
    return Table("Division factors along the path", columns, rows, note=note)
