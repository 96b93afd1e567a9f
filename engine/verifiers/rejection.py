"""Speculative sampling on trees: toss a coin for each draw, and repair what a refusal leaves.

Leviathan et al. 2023 (one draw), SpecInfer (independent siblings), Sequoia and the "recursive
rejection sampling" of Jeon et al. (siblings without replacement).
"""

import torch
from torch import Tensor

from engine.sampling import Sampling, draw, position_noise
from engine.tree import ROOT, DraftTree, Proposal
from engine.verifiers.base import EVERY_KIND, Judgement, Verdict, Verifier, statuses


class Rejection(Verifier):
    """A draw x is kept with probability min(1, p(x) / q(x)).

    After a refusal the next token must come from the residual, which takes the place of p for
    the next draw under the same parent. All is computed in float64.

    The judgements' rule is how the draw was proposed (``one_hot``, ``iid`` or
    ``without_replacement``); for a one-hot draw q is 1.
    """

    key = "rejection"
    summary = "keeps a draw with probability min(1, p/q) and repairs what a refusal leaves"
    exact_kinds = EVERY_KIND

    def judge(
        self,
        tree: DraftTree,
        p: Tensor,
        sampling: Sampling,
        position: int,
        coins: torch.Generator,
    ) -> Verdict:
        walk = [ROOT]
        judgements: list[Judgement] = []
        residuals: dict[int, Tensor] = {}
        while True:
            place = walk[-1]
            proposal = tree.proposals.get(place)
            if not (proposal and proposal.draws):
                law, final = p[place + 1], "bonus"
                break
            bench = self.bench(p[place + 1], proposal)
            kept = _judge_siblings(tree, proposal.draws, bench, coins, judgements)
            if bench.refused:
                residuals[place] = bench.p
            if kept is None:
                law, final = bench.p, "recovered"
                break
            walk.append(kept)
        accepted = walk[1:]
        noise = position_noise(sampling.seed, position + len(accepted), p.shape[-1])
        return Verdict(
            accepted=accepted,
            status=statuses(len(tree), accepted, judgements),
            judgements=judgements,
            final_token=draw(law, noise),
            final=final,
            walk=walk,
            residuals=residuals,
        )

    def bench(self, p: Tensor, proposal: Proposal) -> "Bench":
        return Bench(p, proposal)


class Bench:
    """One parent's draws before the judge: what p and q have become after the refusals so far.

    p: [V] float64, what the next token must be drawn from. q: [V] float64, what the next draw
        was drawn from; None if the draws are one-hot.
    """

    def __init__(self, p: Tensor, proposal: Proposal) -> None:
        self.kind = proposal.kind
        self.p = _normalised(p.double().cpu())
        self.q = None if self.kind == "one_hot" else _normalised(proposal.q.double().cpu())
        self.refused = 0

    def weigh(self, token: int) -> tuple[str, float, float]:
        """The rule for this draw, its p and its q.

        A draw to which q gives nothing cannot have come from q (more were drawn than q holds
        tokens). It was then picked by something that does not know the coins: one-hot.
        """
        p = float(self.p[token])
        q = 0.0 if self.q is None else float(self.q[token])
        return (self.kind, p, q) if q > 0 else ("one_hot", p, 1.0)

    def refuse(self, token: int, rule: str) -> None:
        """Take the refused draw out of p, and out of q where it cannot come again."""
        self.refused += 1
        if rule == "one_hot":
            residual = self.p.clone()
            residual[token] = 0
        else:
            residual = (self.p - self.q).clamp_(min=0)
        self.p = _normalised(residual, otherwise=self.p)
        if rule == "without_replacement":
            self.q[token] = 0
            self.q = _normalised(self.q)


def _judge_siblings(
    tree: DraftTree,
    draws: list[int],
    bench: Bench,
    coins: torch.Generator,
    judgements: list[Judgement],
) -> int | None:
    """The node that is kept, if any. A repeated draw is judged again, as often as it was drawn."""
    for node in draws:
        token = tree.tokens[node]
        rule, p, q = bench.weigh(token)
        accept = min(1.0, p / q)
        coin = toss(coins)
        judgements.append(Judgement(node, rule, p, q, accept, coin))
        if coin < accept:
            return node
        bench.refuse(token, rule)
    return None


def toss(coins: torch.Generator) -> float:
    """Uniform on [0, 1), in steps of 2^-53."""
    return float(torch.rand((), generator=coins, dtype=torch.float64))


def _normalised(weights: Tensor, otherwise: Tensor | None = None) -> Tensor:
    """Weights [V] divided by their sum. ``otherwise`` where nothing is left of them.

    A residual without mass means that the refused draw had p = q up to rounding, so that its
    refusal was all but impossible: p then stays as it was.
    """
    mass = weights.sum()
    if mass > 0:
        return weights / mass
    return weights if otherwise is None else otherwise
