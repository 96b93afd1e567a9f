"""A token that a constraint allows, found by asking about drawn tokens only, and a weight for it.

Lipkin et al., Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling (2025).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.constraint import masked
from engine.errors import UserError

MOST_REFUSED = 1024
"""After so many refusals at one place, the constraint is asked once about every token."""
NOTHING = "The constraint leaves no token that the target could draw here."


class Died(UserError):
    """The law gives no token that the constraint allows a probability above 0."""


@dataclass
class Tested:
    """The tokens tested at one place. weight: estimates the probability of all allowed tokens, without bias. checks: how many
    tokens the constraint was asked about. tokens: those drawn, and whether each is allowed."""

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
    """Draw from a law [V], each token once, until one is allowed; that one has the law cut to the allowed tokens.

    One token more is drawn. The weight is 1 - r for each token refused before, where r is its chance among those that were
    left, times the chance of the token that came if the one more is refused. The mean of the weight where v comes, times the
    chance that it comes, is the law's v for each allowed v, so the mean over all v is the probability of all allowed tokens.

    draw: an index from weights [V] of any sum. allows: of one token. mask: of all tokens, bool [V]. Raises Died.
    """
    left, tested = law.double().cpu().clone(), Tested()

    def tried() -> bool:
        """Draw one more."""
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
    """Ask about every token at once; the weight stays unbiased. left: [V], the law without the tokens that were refused."""
    kept = left * masked(torch.zeros_like(left), mask).exp()
    tested.checks += len(left)
    share = float(kept.sum() / left.sum())
    if not share > 0:
        raise Died(NOTHING)
    tested.weight *= share
    tested.token = draw(kept)
    tested.tokens.append((tested.token, True))
    return tested
