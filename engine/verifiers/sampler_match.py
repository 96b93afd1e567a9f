"""Draw as the target alone would, and keep what was guessed."""

from engine.verifiers.base import EVERY_KIND, Case, Verdict, Verifier
from engine.verifiers.matching import follow


class SamplerMatch(Verifier):
    """The target's token is drawn at each place of the walk; a child that equals it is kept.

    The noise is keyed by the position in the text and known to no drafter, so the text is, token
    for token, the one that plain decoding writes with the same seed. Exact for any proposal;
    it accepts less than rejection. Judgements show the target's p of the child.
    """

    key = "sampler_match"
    title = "Sampler match"
    summary = "draws the target's own token and keeps the child that equals it"
    exact_kinds = EVERY_KIND
    same_text = True

    def judge(self, case: Case) -> Verdict:
        tree, p = case.tree, case.p

        def choose(place: int, depth: int) -> int:
            return case.chance.draw(p[place + 1], case.position + depth)

        def weigh(place: int, children: list[int], token: int) -> list[float]:
            return p[place + 1, [tree.tokens[child] for child in children]].tolist()

        return follow(tree, self.key, choose, weigh)
