"""Draws a token that a constraint allows, and computes a weight for the token. The constraint is asked only about the
tokens that were drawn.

Lipkin et al., Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling (2025).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.constraint import masked
from engine.errors import UserError

MOST_REFUSED = 1024
"""If this many tokens were refused at one position, the constraint is asked about the whole vocabulary at once."""
NOTHING = "The constraint leaves no token that the target could draw here."


class Died(UserError):
    """Raised if every token with a probability above 0 is forbidden by the constraint."""


@dataclass
class Tested:
    """The outcome of drawing the token of one position. token: the allowed token. weight: an unbiased estimate of the
    total probability of all allowed tokens. checks: the number of tokens that the constraint was asked about. tokens:
    the drawn tokens, each with whether it is allowed."""

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
    """Draw tokens from a law [V] without replacement until one is allowed. The allowed token is distributed by the law
    restricted to allowed tokens.

    After that one additional token is drawn, for the weight only. The weight is a product. Each token that was refused
    before the allowed one contributes a factor 1 - r, where r is the token's probability among the tokens that were
    left. If the additional token is refused, the probability of the allowed token among the tokens that were left is
    another factor. For each allowed token v, the probability of drawing v, times the mean weight in the cases in which
    v is drawn, is the law's probability of v. So the mean of the weight is the total probability of all allowed tokens.

    draw: draws an index from weights [V], whatever their sum. allows: whether one token is allowed. mask: returns which
    of all tokens are allowed, bool [V]. Raises Died if no allowed token has a probability above 0.
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
    """Ask about the whole vocabulary, and draw one of the allowed tokens; the weight stays unbiased. left: [V], the law
    without the tokens that were refused. Raises Died if no allowed token has a probability above 0."""
    kept = left * masked(torch.zeros_like(left), mask).exp()
    tested.checks += len(left)
    share = float(kept.sum() / left.sum())
    if not share > 0:
        raise Died(NOTHING)
    tested.weight *= share
    tested.token = draw(kept)
    tested.tokens.append((tested.token, True))
    return tested
