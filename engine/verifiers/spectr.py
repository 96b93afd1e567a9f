"""k-sequential selection: every draft gets the same chance, p divided by a factor over q.

Sun et al., SpecTr: Fast Speculative Decoding via Optimal Transport (2023).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.exhibits import Exhibit, Table
from engine.tree import DraftTree, Draw
from engine.verifiers.base import Case, Verdict
from engine.verifiers.rejection import Rejection, SiblingTrial, normalised
from engine.verifiers.schemes import IID, Scheme, scheme_of

BISECTIONS = 24
SHOWN = 4  # places of a walk in the exhibit


class SpecTr(Rejection):
    """Each of k independent drafts x is kept with probability min(1, p(x) / (rho q(x))).

    p stays as it is until all k are refused. rho, between 1 and k, is the smallest for which the
    rule is exact: then it keeps one of them at least (1 - 1/e) times as often as the optimum.

    It judges independent draws from one q. Other draws under a node, and a single one, for which
    rho is 1, are judged as rejection sampling does.

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
        return _factor_and_share(p, q, scheme.draws)[1]


class KSequentialTrial(SiblingTrial):
    """See ``SpecTr``. factor: rho. expected: the chance that one of the k is kept, before any is seen."""

    def __init__(self, p: Tensor, laws: Sequence[Tensor], draws: Sequence[Draw]) -> None:
        super().__init__(p, laws)
        self._draws = len(draws)
        self._law = draws[0].law
        self.factor, self.expected = _factor_and_share(self.p, self.q(self._law), self._draws)

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


def _factor_and_share(p: Tensor, q: Tensor, draws: int) -> tuple[float, float]:
    """rho for p and q [V], and how often one of the drafts is then kept.

    As rho lies between 1 and k, it matters only for tokens whose p / q lies there as well. The others
    are summed once, into two entries that every rho treats alike.
    """
    low, high = p <= q, p >= draws * q
    between = ~(low | high)
    never = torch.full((1,), torch.inf, dtype=p.dtype)
    p_few = torch.cat([p[between], p[low].sum()[None], never])
    q_few = torch.cat([q[between], never, q[high].sum()[None]])
    rho = division_factor(p_few, q_few, draws)
    return float(rho), float(kept_share(p_few, q_few, rho, draws))


def division_factor(p: Tensor, q: Tensor, draws: int) -> Tensor:
    """rho [...] for p and q [..., V], found by bisection; never below the true one, so always exact.

    The rule is exact where 1 - (1 - b)^k <= rho b, b being the chance that one draft is kept.
    """
    low = torch.ones(p.shape[:-1], dtype=p.dtype)
    high = torch.full_like(low, float(draws))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        one = kept_share(p, q, middle, 1)
        exact = _one_of(one, draws) <= middle * one
        low, high = torch.where(exact, low, middle), torch.where(exact, middle, high)
    return high


def kept_share(p: Tensor, q: Tensor, factor: Tensor, draws: int) -> Tensor:
    """[...], the chance that one of so many independent drafts is kept under this factor [...]."""
    return _one_of(torch.minimum(p / factor[..., None], q).sum(-1), draws)


def residual(p: Tensor, q: Tensor, factor: float, draws: int) -> Tensor:
    """Weights [V] of the next token after every draft was refused."""
    kept = torch.minimum(p / factor, q)
    one = kept.sum()
    if one <= 0:
        return p
    return (p - kept * (_one_of(one, draws) / one)).clamp_(min=0)


def _one_of(share: Tensor, draws: int) -> Tensor:
    """The chance that at least one of so many independent events of this chance happens."""
    return -torch.expm1(draws * torch.log1p(-share.clamp(max=1.0)))


def _shown(factors: Sequence[Sequence[float]]) -> Exhibit:
    return Table(
        title="Division factors along the path",
        columns=("place", "drafts", "division factor", "chance that one is kept"),
        rows=[[place, *row] for place, row in enumerate(factors, start=1)],
        note="p is divided by the factor before it is compared with q, so that the first draft leaves the others a chance.",
    )
