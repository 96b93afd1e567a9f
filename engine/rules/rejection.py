"""Speculative sampling on trees: toss a coin for each draw, and correct p after a refusal.

Leviathan et al. 2023 (one draw), SpecInfer (independent siblings), Sequoia and the "recursive rejection sampling" of
Jeon et al. (siblings without replacement).
"""

from collections.abc import Sequence

from torch import Tensor

from engine.core.rule import EVERY_KIND, Case, Judgement, Verdict, Verifier
from engine.core.schemes import Scheme
from engine.core.tree import ROOT, DraftTree, Draw
from engine.rules.expected_acceptance import rejection_keeps
from engine.rules.matching import verdict_of
from engine.rules.sentences import REJECTION


class Rejection(Verifier):
    """A draw x is kept with probability min(1, p(x) / q(x)).

    After a refusal, the residual takes the place of p for the next draw, and for the final token. All is float64.

    A judgement's rule says how the draw was proposed (``one_hot``, ``iid`` or ``without_replacement``); for a one-hot
    draw q is 1.
    """

    key = "rejection"
    title = "Rejection sampling"
    summary = "keeps a draw with probability min(1, p/q) and repairs what a refusal leaves"
    exact_kinds = EVERY_KIND
    sentences = REJECTION

    def judge(self, case: Case) -> Verdict:
        tree, walk = case.tree, [ROOT]
        judgements: list[Judgement] = []
        residuals: dict[int, Tensor] = {}
        while True:
            place = walk[-1]
            draws = tree.draws.get(place)
            if not draws:
                law, final = self.law_behind(case, place), "bonus"
                break
            trial = self.trial_of(case.p[place + 1], tree, draws)
            kept = _judge_siblings(tree, draws, trial, case, judgements)
            if trial.residual is not None:
                residuals[place] = trial.residual
            if kept is None:
                law, final = trial.p, "recovered"
                break
            walk.append(kept)
        token = case.chance.draw(law, case.position + len(walk) - 1)
        return verdict_of(tree, walk, judgements, token, final, residuals=residuals)

    def law_behind(self, case: Case, place: int) -> Tensor:
        """[V], the law of the next token after a place without draws."""
        return case.p[place + 1]

    def trial_of(self, p: Tensor, tree: DraftTree, draws: Sequence[Draw]) -> "SiblingTrial":
        """The trial of the draws under one place. p: [V], the target's law at that place."""
        return SiblingTrial(p, tree.laws)

    def expected_acceptance(self, p: Tensor, scheme: Scheme) -> float | None:
        return rejection_keeps(p, scheme)


class SiblingTrial:
    """The trial of one parent's draws: p and the draft laws, both updated after each refusal.

    p: [V] float64, the law from which the next token must now be drawn. A draft law is always the law of the next draw
    from it: drawn tokens that cannot come again are left out.
    """

    def __init__(self, p: Tensor, laws: Sequence[Tensor]) -> None:
        """p: [V], the target's law after the parent. laws: the draft laws of the tree."""
        self.p = normalised(p.double().cpu())
        self._laws = laws
        self._left: dict[int, Tensor] = {}
        self.refused = 0

    @property
    def residual(self) -> Tensor | None:
        """[V], the residual that has taken the place of p; None while p is unchanged."""
        return self.p if self.refused else None

    def q(self, law: int) -> Tensor:
        """[V] float64, this draft law without the tokens that have been left out of it."""
        if law not in self._left:
            self._left[law] = normalised(self._laws[law].double().cpu())
        return self._left[law]

    def weigh(self, token: int, drawn: Draw) -> tuple[str, float, float]:
        """The rule for this draw, its p and its q.

        A draw whose q is 0 cannot have come from q (more tokens were drawn than q holds). It was picked without
        knowledge of the coins, so it counts as one-hot.
        """
        p = float(self.p[token])
        q = 0.0 if drawn.kind == "one_hot" else float(self.q(drawn.law)[token])
        return (drawn.kind, p, q) if q > 0 else ("one_hot", p, 1.0)

    def refuse(self, token: int, rule: str, drawn: Draw) -> None:
        """Remove the refused draw from p, and from its draft law if that law cannot give the token again."""
        self.refused += 1
        if rule == "one_hot":
            residual = self.p.clone()
            residual[token] = 0
        else:
            residual = (self.p - self.q(drawn.law)).clamp_(min=0)
        self.p = normalised(residual, otherwise=self.p)
        self.leave_out(token, rule, drawn)

    def leave_out(self, token: int, rule: str, drawn: Draw) -> None:
        """Remove the token from its draft law if that law cannot give the token again."""
        if rule == "without_replacement":
            left = self.q(drawn.law).clone()
            left[token] = 0
            self._left[drawn.law] = normalised(left)


def _judge_siblings(
    tree: DraftTree,
    draws: Sequence[Draw],
    trial: SiblingTrial,
    case: Case,
    judgements: list[Judgement],
) -> int | None:
    """The node that is kept, or None. A token that was drawn repeatedly is judged once per draw."""
    for drawn in draws:
        token = tree.tokens[drawn.node]
        rule, p, q = trial.weigh(token, drawn)
        accept = min(1.0, p / q)
        coin = case.chance.toss()
        judgements.append(Judgement(drawn.node, rule, p, q, accept, coin))
        if coin < accept:
            return drawn.node
        trial.refuse(token, rule, drawn)
    return None


def normalised(weights: Tensor, otherwise: Tensor | None = None) -> Tensor:
    """Divide weights [V] by their sum. If the sum is 0, return ``otherwise``, or the weights if that is None.

    A residual without mass means that the refused draw had p = q up to rounding, so its refusal was all but impossible;
    p then stays unchanged.
    """
    mass = weights.sum()
    if mass > 0:
        return weights / mass
    return weights if otherwise is None else otherwise
