"""Draws a token that a constraint allows, by checking drawn tokens only, together with a weight for the token.

Lipkin et al., Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling (2025).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.constraint import masked
from engine.errors import UserError

MOST_REFUSED = 1024
"""After this many refused tokens at one place, the constraint is asked once about the whole vocabulary."""
NOTHING = "The constraint leaves no token that the target could draw here."


class Died(UserError):
    """Raised if every token with a probability above 0 is forbidden by the constraint."""


@dataclass
class Tested:
    """The outcome of a draw at one place. token: the token that was drawn in the end. weight: an unbiased estimate of
    the probability of all allowed tokens. checks: the number of tokens that the constraint was asked about. tokens: the
    drawn tokens, each with whether it is allowed."""

    token: int = 0
    weight: float = 1.0
    checks: int = 0
    tokens: list[tuple[int, bool]] = field(default_factory=list)


def draw_allowed(
    law: Tensor,
    draw: Callable[[Tensor], int],
    allows: Callable[[int], bool],
    mask: Callable[[], Tensor | None],
) -> Tested:
    """Draw tokens from a law [V] without replacement until one is allowed. The allowed token has the law cut to the
    allowed tokens.

    Then one more token is drawn, for the weight only. Each token refused before the allowed one gives a factor 1 - r,
    where r is its probability among the tokens that were left. If the additional token is refused, the probability of
    the allowed token among the tokens that were left is another factor. For each allowed v, the probability that v
    comes, times the mean weight where it comes, is the law's v; so the mean of the weight is the probability of all
    allowed tokens.

    draw: draws an index from weights [V] of any sum. allows: whether one token is allowed. mask: which of all tokens
    are allowed, bool [V]. Raises Died if no allowed token has a probability above 0.
    """
    left, tested = law.double().cpu().clone(), Tested()

    def tried() -> bool:
        """Draw one more token; return whether the constraint allows it."""
        tested.token = draw(left)
        tested.checks += 1
        allowed = allows(tested.token)
        tested.tokens.append((tested.token, allowed))
        return allowed

    for _ in range(MOST_REFUSED):
        whole = float(left.sum())
        if whole <= 0:
            raise Died(NOTHING)
        allowed = tried()
        token, share = tested.token, float(left[tested.token]) / whole
        left[token] = 0
        rest = float(left.sum())
        if allowed:
            if rest > 0 and not tried():
                tested.weight *= share
            tested.token = token
            return tested
        tested.weight *= rest / whole
    return _all_tested(left, draw, mask(), tested)


def _all_tested(
    left: Tensor, draw: Callable[[Tensor], int], mask: Tensor | None, tested: Tested
) -> Tested:
    """Draw from the allowed tokens after asking about the whole vocabulary; the weight stays unbiased. left: [V], the
    law without the refused tokens. Raises Died if no allowed token has a probability above 0."""
    kept = left * masked(torch.zeros_like(left), mask).exp()
    tested.checks += len(left)
    share = float(kept.sum() / left.sum())
    if not share > 0:
        raise Died(NOTHING)
    tested.weight *= share
    tested.token = draw(kept)
    tested.tokens.append((tested.token, True))
    return tested
