"""Draw each token as plain decoding would, and keep drafted tokens that are equal to the drawn ones."""

import torch
from torch import Tensor

from engine.core.rule import EVERY_KIND, Case, Verdict, Verifier
from engine.core.schemes import IID, Scheme
from engine.rules.matching import follow
from engine.rules.sentences import SAMPLER_MATCH


class SamplerMatch(Verifier):
    """The target's token is drawn at each place of the walk; a child that equals it is kept.

    The random noise of each draw is keyed by the position in the text, and no drafter knows this noise. So the text
    equals, token for token, the text of plain decoding with the same seed. The rule is exact for any proposal; it
    accepts fewer tokens than rejection sampling. Judgements show the target's p of the child.
    """

    key = "sampler_match"
    title = "Sampler match"
    summary = "draws the target's own token and keeps the child that equals it"
    exact_kinds = EVERY_KIND
    sentences = SAMPLER_MATCH
    same_text = True

    def judge(self, case: Case) -> Verdict:
        tree, p = case.tree, case.p

        def choose(place: int, depth: int) -> int:
            return case.chance.draw(p[place + 1], case.position + depth)

        def weigh(place: int, children: list[int], token: int) -> list[float]:
            return p[place + 1, [tree.tokens[child] for child in children]].tolist()

        return follow(tree, self.key, choose, weigh)

    def expected_acceptance(self, p: Tensor, scheme: Scheme) -> float | None:
        """The probability that the target's token is among the drafts. Returns None for fixed tokens and for more than
        two draws without replacement, because the engine has no formula for them."""
        if scheme.fixed or (scheme.kind != IID and scheme.draws > 2):
            return None
        p, q = p.double().cpu(), scheme.q.double().cpu()
        drawn = 1 - (1 - q) ** scheme.draws
        if scheme.kind != IID and scheme.draws == 2:
            odds = torch.where(q > 0, q / (1 - q), 0.0)
            drawn = q * (1 + odds.sum() - odds)
        return min(1.0, float((p * drawn).sum()))
