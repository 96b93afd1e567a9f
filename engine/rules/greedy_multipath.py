"""Greedy multi-path block verification: the best of several independent chains is chosen and judged as a block.

Thomas and Pal (2026), arXiv 2602.16961.
"""

import torch
from torch import Tensor

from engine.core.rule import Case, Judgement, Verdict
from engine.core.tree import ROOT, Draw
from engine.errors import UserError
from engine.rules.block import Block
from engine.rules.leaf_to_root import BranchTrial, LeafToRoot, weighed


class GreedyMultipath(Block):
    """From the root, always follow the child with the largest p / q. The K chains are independent, so the chosen chain
    is the best of K in the lexicographic order of p / q. The law of this chain's tokens is not q. After a node that has
    probability Q under q, it is

        q~(v) = ((a + Q q(v))^K - a^K) / ((A + Q)^K - A^K),   a = A + Q q(tokens ranked below v),

    where A is the probability of all chains that rank below the node. With q~ in place of q the chain is judged like a
    single chain. More chains need not help: the law of the best one moves away from p.

    The judgements' q is q~. Siblings that are not followed get judgements of the rule ``passed``, listed last because,
    unlike refusals, they do not change p. Fixed chains, as at temperature 0, are judged like the branches of a tree.
    """

    key = "greedy_multipath"
    title = "Greedy multi-path"
    summary = "follows the best of several independent chains, and weighs it from its end"
    shapes = frozenset({"chain", "paths"})
    sentences = {
        **Block.sentences,
        **weighed("{token} is the next of the best chain with a chance of {q}, and p gave it {p}"),
        "passed.refused": "Another of the chains had a larger p ÷ q here, and only that one is followed: rejected.",
    }
    note = "The best of the chains, by p ÷ q from place to place, is judged by the law of the best of so many."

    def judge(self, case: Case) -> Verdict:
        self._chains = max(map(len, case.tree.draws.values()), default=0)
        self._passing: dict[int, int] = {ROOT: self._chains}
        self._ranked_below = 0.0
        return LeafToRoot.judge(self, case)

    def draws_at(self, place, trial):
        draws = super().draws_at(place, trial)
        kinds = {(drawn.kind, drawn.law) for drawn in draws}
        if all(kind == "one_hot" for kind, _ in kinds):
            return draws
        if len(kinds) > 1 or len(draws) != self._passing.get(place, self._chains):
            raise UserError(
                "The verifier greedy_multipath judges whole chains drawn independently of each other, and this draft is not."
            )
        return [self._chosen(draws, trial)]

    def _chosen(self, draws: list[Draw], trial: BranchTrial) -> Draw:
        """The draw that is followed. Replaces the trial's law by the law of the best chain."""
        tokens, law = self._case.tree.tokens, draws[0].law
        q = trial.q(law)
        ratio = torch.where(q > 0, trial.p / q.clamp(min=1e-300), torch.inf)
        order = ratio.argsort(stable=True)
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order))
        best = max(draws, key=lambda drawn: int(rank[tokens[drawn.node]]))
        below, up_to = ranked(q[order], self._ranked_below)
        skewed = torch.empty_like(q)
        skewed[order] = best_of(self._chains, q[order], below, up_to)
        trial.replace_law(law, skewed)
        for drawn in dict.fromkeys(draws):
            if drawn.node != best.node:
                token = tokens[drawn.node]
                self.passed.append(
                    Judgement(
                        drawn.node, "passed", float(trial.p[token]), float(q[token]), 0.0, None
                    )
                )
        place = int(rank[tokens[best.node]])
        self._ranked_below = float(below[place] / up_to[place])
        self._passing[best.node] = draws.count(best)
        return best


def ranked(share: Tensor, start: float) -> tuple[Tensor, Tensor]:
    """Shares of those chains that rank no higher than a node: two vectors [V], in rank order of the node's next tokens.
    The first is the share that ranks below each token, the second the share that ranks below the token or has it.
    share: [V], q of the tokens in rank order. start: the share that ranks below the node itself."""
    up_to = share.cumsum(0)
    return start + (1 - start) * (up_to - share), start + (1 - start) * up_to


def best_of(chains: int, share: Tensor, below: Tensor, up_to: Tensor) -> Tensor:
    """[V], the law q~ of the next token of the best of ``chains`` chains. share, below, up_to: see ``ranked``.

    A difference of powers is divided by the difference of their bases, so that nothing cancels: all terms are positive.
    """
    law = share * sum(up_to**power * below ** (chains - 1 - power) for power in range(chains))
    return law / law.sum()
