"""Keep what the target would have written itself at temperature 0."""

import torch
from torch import Tensor

from engine.sampling import Sampling
from engine.tree import DraftTree
from engine.verifiers.base import EVERY_KIND, Verdict, Verifier
from engine.verifiers.matching import follow


class Greedy(Verifier):
    """A child is kept when it is the target's most probable token.

    Exact whatever was proposed, for nothing is random. Judgements show the one-hot p, 1 or 0.
    """

    key = "greedy"
    summary = "keeps a token when it is the target's most probable one (temperature 0)"
    exact_kinds = EVERY_KIND
    only_greedy = True

    def judge(
        self,
        tree: DraftTree,
        p: Tensor,
        sampling: Sampling,
        position: int,
        coins: torch.Generator,
    ) -> Verdict:
        if not sampling.greedy:
            raise ValueError("the greedy rule is exact at temperature 0 only")
        best = p.argmax(-1).tolist()
        return follow(
            tree,
            self.key,
            choose=lambda place, depth: best[place + 1],
            weigh=lambda place, children, token: [
                float(tree.tokens[child] == token) for child in children
            ],
        )
