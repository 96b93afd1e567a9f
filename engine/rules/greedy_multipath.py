"""Greedy multi-path block verification: of several independent chains the best is chosen, and judged as a block.

Thomas and Pal (2026), arXiv 2602.16961.
"""

import torch

from engine.core.rule import Case, Judgement, Verdict
from engine.core.tree import ROOT, Draw
from engine.errors import UserError
from engine.rules.block import Block
from engine.rules.leaf_to_root import LeafToRoot


class GreedyMultipath(Block):
    """From the root, always follow the child with the largest p / q. The K chains are independent, so the chosen one is the
    best of K in the lexicographic order of p / q, and its law is not q but, behind a node of chance Q under q,

        q~(v) = ((a + Q q(v))^K - a^K) / ((A + Q)^K - A^K),   a = A + Q q(tokens ranked below v),

    where A is the chance of all chains that rank below the node. With q~ for q it is judged like a single chain. More chains
    need not help: the law of the best one moves away from p.

    Siblings that are not followed have the judgements' rule ``passed``. Fixed chains, as at temperature 0, are judged like
    the branches of a tree.
    """

    key = "greedy_multipath"
    title = "Greedy multi-path"
    summary = (
        "follows the best of several independent chains, and weighs it as a whole from its end"
    )
    shapes = frozenset({"chain", "paths"})
    sentences = {
        **Block.sentences,
        "passed.refused": "Another of the chains had a larger p ÷ q here, and only that one is followed: rejected.",
    }
    note = "The best of the chains, by p ÷ q from place to place, is judged by the law of the best of so many."

    def judge(self, case: Case) -> Verdict:
        self._chains = max(map(len, case.tree.draws.values()), default=0)
        self._passing: dict[int, int] = {ROOT: self._chains}
        self._below_chance, self._chance = 0.0, 1.0
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

    def _chosen(self, draws: list[Draw], trial) -> Draw:
        """The draw that is followed; the law of the trial becomes that of the best chain."""
        tokens, law = self._case.tree.tokens, draws[0].law
        q = trial.q(law)
        ratio = torch.where(q > 0, trial.p / q.clamp(min=1e-300), torch.inf)
        order = ratio.argsort(stable=True)
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order))
        best = max(draws, key=lambda drawn: int(rank[tokens[drawn.node]]))
        share = q[order]
        behind = share.cumsum(0) - share
        skewed = torch.empty_like(q)
        skewed[order] = best_of(self._chains, share, behind, self._below_chance, self._chance)
        trial.replace_law(law, skewed)
        for drawn in dict.fromkeys(draws):
            if drawn.node != best.node:
                p, other = float(trial.p[tokens[drawn.node]]), float(q[tokens[drawn.node]])
                self.judgements.append(Judgement(drawn.node, "passed", p, other, 0.0, None))
        place = int(rank[tokens[best.node]])
        self._below_chance += self._chance * float(behind[place])
        self._chance *= float(share[place])
        self._passing[best.node] = draws.count(best)
        return best


def best_of(chains: int, share, behind, below: float, chance: float):
    """[V], the law q~ of the next token of the best chain. share: [V], q of the tokens in their order. behind: [V], q of those
    ranked below each. below, chance: A and Q (see ``GreedyMultipath``).

    Both differences of powers are divided by the difference of their bases, so that nothing cancels: all terms are positive.
    """
    whole = below + chance
    high = (below + chance * (behind + share)) / whole
    low = (below + chance * behind) / whole
    start = below / whole
    weights = sum(high**each * low ** (chains - 1 - each) for each in range(chains))
    law = share * weights / sum(start ** (chains - 1 - each) for each in range(chains))
    return law / law.sum()
