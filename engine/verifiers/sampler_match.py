"""Draw as the target alone would, and keep what was guessed."""

import torch
from torch import Tensor

from engine.sampling import Sampling, draw, position_noise
from engine.tree import DraftTree
from engine.verifiers.base import EVERY_KIND, Verdict, Verifier
from engine.verifiers.matching import follow


class SamplerMatch(Verifier):
    """The target's token is drawn at each place of the walk; a child that equals it is kept.

    The noise is keyed by the position in the text and known to no drafter, so the text is, token
    for token, the one that plain decoding writes with the same seed. Exact for any proposal;
    it accepts less than rejection. Judgements show the target's p of the child.
    """

    key = "sampler_match"
    summary = "draws the target's own token and keeps the child that equals it"
    exact_kinds = EVERY_KIND

    def judge(
        self,
        tree: DraftTree,
        p: Tensor,
        sampling: Sampling,
        position: int,
        coins: torch.Generator,
    ) -> Verdict:
        vocabulary = p.shape[-1]

        def choose(place: int, depth: int) -> int:
            return draw(p[place + 1], position_noise(sampling.seed, position + depth, vocabulary))

        def weigh(place: int, children: list[int], token: int) -> list[float]:
            return p[place + 1, [tree.tokens[child] for child in children]].tolist()

        return follow(tree, self.key, choose, weigh)
