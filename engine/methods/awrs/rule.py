"""Adaptive weighted rejection sampling: only drawn tokens are checked by the constraint, and every token gets a weight.

Lipkin et al., Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling (2025).
"""

import math
from functools import partial

from engine.core.exhibits import Gauge, Table, Token
from engine.core.rule import Case, Verdict
from engine.methods.awrs.allowed_draw import Tested, draw_allowed
from engine.rules.matching import follow
from engine.rules.sampler_match import SamplerMatch


class Awrs(SamplerMatch):
    """Draws tokens from p without a mask, and without replacement, until the constraint allows one.

    The allowed token has the law of masked decoding, where p is cut to the allowed tokens. It is even the same token
    that the rule sampler match would draw from the masked p, because both use the random numbers that belong to the
    token's position in the text.

    With every token comes a weight (``engine.methods.awrs.allowed_draw``). Masked decoding changes the probability of a
    whole text; the product of the text's weights corrects this. The decoder ``awrs`` uses these products to resample
    several texts; this rule writes only one text.

    Without a constraint the rule is sampler match.
    """

    key = "awrs"
    title = "Weighted rejection (AWRS)"
    summary = (
        "under a constraint, tests only tokens that are drawn, and weighs the text without bias"
    )
    tests_tokens = True
    sentences = {
        **SamplerMatch.sentences,
        "awrs.kept": "The target drew tokens from p, without a mask, until the constraint allowed one: {token} (p {p}), just what "
        "was drafted: accepted.",
        "awrs.refused": "The target drew tokens from p, without a mask, until the constraint allowed one: {final}, not {token} "
        "(p {p}): rejected.",
    }

    def __init__(self, settings=None) -> None:
        super().__init__(settings)
        self.checks = 0
        self.log_weights: list[float] = []  # log of the weight of each place

    def judge(self, case: Case) -> Verdict:
        if case.bound is None:
            return super().judge(case)
        case.sampling.check_whole(self.key)
        tree, p, constraint = case.tree, case.p, case.bound.constraint
        places: list[Tested] = []

        def choose(place: int, depth: int) -> int:
            path = tuple(tree.tokens[node] for node in tree.path(place))
            draw = partial(case.chance.draw, position=case.position + depth)
            allows, mask = partial(constraint.allows, path), partial(constraint.allowed, path)
            places.append(draw_allowed(p[place + 1], draw, allows, mask))
            return places[-1].token

        def weigh(place: int, children: list[int], token: int) -> list[float]:
            return p[place + 1, [tree.tokens[child] for child in children]].tolist()

        verdict = follow(tree, self.key, choose, weigh)
        self.checks += sum(place.checks for place in places)
        self.log_weights += [
            math.log(place.weight) if place.weight else -math.inf for place in places
        ]
        verdict.exhibits += self._exhibits(places, p.shape[-1])
        return verdict

    def _exhibits(self, places: list[Tested], vocabulary: int) -> list:
        rows = [
            [Token(token), "allowed" if allowed else "forbidden", place.weight]
            for place in places
            for token, allowed in place.tokens[:8]
        ]
        mean = self.checks / len(self.log_weights)
        return [
            Table(
                "Tokens drawn, and what the constraint said",
                ["token", "the constraint", "weight of the place"],
                rows,
            ),
            Gauge(
                "Tokens tested for a token of the text",
                mean,
                maximum=float(vocabulary),
                note=f"{mean / vocabulary:.2%} of the vocabulary. Log of the text's weight so far: {sum(self.log_weights):.2f}.",
            ),
        ]
