"""Adaptive weighted rejection sampling: the constraint is asked about drawn tokens only, and every token has a weight.

Lipkin et al., Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling (2025).
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.bound import Bound
from engine.core.constraint import masked
from engine.core.exhibits import Gauge, Table, Token
from engine.core.rule import Case, Verdict
from engine.errors import UserError
from engine.rules.matching import follow
from engine.rules.sampler_match import SamplerMatch

MOST_REFUSED = 1024
"""After so many refusals at one place, the constraint is asked once about every token."""
NOTHING = "The constraint leaves no token that the target could draw here."


class Died(UserError):
    """The target gives no token that the constraint allows a probability above 0."""


@dataclass
class Tested:
    """The tokens tested at one place. weight: estimates the probability of all allowed tokens, without bias. checks: how many
    tokens the constraint was asked about. tokens: those drawn, and whether each is allowed."""

    token: int = 0
    weight: float = 1.0
    checks: int = 0
    tokens: list[tuple[int, bool]] = field(default_factory=list)


class Awrs(SamplerMatch):
    """Tokens are drawn from p without a mask, each once, until one is allowed: that one has the law of masked decoding.
    With the noise of its place of the text it is the very token that sampler match draws from the masked p.

    One token more is drawn. The weight is 1 - r for each token refused before, where r is its chance among those that were
    left, times the chance of the token that came if the one more is refused. Its mean is the probability of all allowed tokens. The
    product of the weights makes up for what masked decoding changes: ``engine.methods.awrs.particles`` resamples by it.

    Without a constraint it is sampler match.
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
        self.log_weights: list[float] = []  # of each place

    def judge(self, case: Case) -> Verdict:
        if case.bound is None:
            return super().judge(case)
        case.sampling.check_whole(self.key)
        tree, p, tested = case.tree, case.p, []

        def choose(place: int, depth: int) -> int:
            path = tuple(tree.tokens[node] for node in tree.path(place))
            tested.append(test(case, case.bound, p[place + 1], path, case.position + depth))
            return tested[-1].token

        def weigh(place: int, children: list[int], token: int) -> list[float]:
            return p[place + 1, [tree.tokens[child] for child in children]].tolist()

        verdict = follow(tree, self.key, choose, weigh)
        self.checks += sum(place.checks for place in tested)
        self.log_weights += [
            math.log(place.weight) if place.weight else -math.inf for place in tested
        ]
        verdict.exhibits += self._exhibits(tested, p.shape[-1])
        return verdict

    def _exhibits(self, tested: list[Tested], vocabulary: int) -> list:
        rows = [
            [Token(token), "allowed" if allowed else "forbidden", place.weight]
            for place in tested
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


def test(case: Case, bound: Bound, p: Tensor, path: tuple[int, ...], position: int) -> Tested:
    """Draw and test at one place. p: [V], without a mask. path: drafted tokens down to there. Raises Died."""
    left, found = p.double().cpu().clone(), Tested()

    def tried() -> bool:
        """Draw one more, and take it out of what is left."""
        found.token = case.chance.draw(left, position)
        found.checks += 1
        allowed = bound.constraint.allows(path, found.token)
        found.tokens.append((found.token, allowed))
        return allowed

    for _ in range(MOST_REFUSED):
        whole = float(left.sum())
        if whole <= 0:
            raise Died(NOTHING)
        allowed = tried()
        token, share = found.token, float(left[found.token]) / whole
        left[token] = 0
        rest = float(left.sum())
        if allowed:
            if rest > 0 and not tried():
                found.weight *= share
            found.token = token
            return found
        found.weight *= rest / whole
    return _all_tested(case, bound, left, path, position, found)


def _all_tested(
    case: Case, bound: Bound, left: Tensor, path: tuple[int, ...], position: int, found: Tested
) -> Tested:
    """Ask about every token at once; the weight stays unbiased. left: [V], p without the tokens that were refused."""
    mask = bound.constraint.allowed(path)
    kept = left * masked(torch.zeros_like(left), mask).exp()
    found.checks += len(left)
    share = float(kept.sum() / left.sum())
    if not share > 0:
        raise Died(NOTHING)
    found.weight *= share
    found.token = case.chance.draw(kept, position)
    found.tokens.append((found.token, True))
    return found
