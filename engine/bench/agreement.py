"""Whether all contestants wrote the same text: greedy text is unique, up to rounding at near
ties."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.bench.suite import Result

NEAR_TIE = 1e-4
"""The largest lead of the best logit over the second that rounding may reverse."""


@dataclass(frozen=True)
class Difference:
    """Where a contestant first left the reference. margin: the lead of the reference's best
    logit there; numerics: whether that is a near tie."""

    contestant: str
    prompt: str
    position: int
    margin: float

    @property
    def numerics(self) -> bool:
        return self.margin < NEAR_TIE


def differences(
    results: Sequence[Result], reference: str, logits: Callable[[list[int]], Tensor]
) -> list[Difference]:
    """Compare every contestant's first round with the reference's.

    logits(tokens): [V], the reference's logits after these tokens.
    """
    first = [result for result in results if result.round == 0]
    right = {r.prompt.name: r.writing.tokens for r in first if r.contestant == reference}
    found = []
    for result in first:
        expected = right[result.prompt.name]
        position = first_difference(result.writing.tokens, expected)
        if position is not None:
            margin = _margin(logits([*result.prompt.tokens, *expected[:position]]))
            found.append(Difference(result.contestant, result.prompt.name, position, margin))
    return found


def first_difference(tokens: Sequence[int], expected: Sequence[int]) -> int | None:
    """None where the two are equal; a text that ends early differs where it ends."""
    if list(tokens) == list(expected):
        return None
    for position, (one, other) in enumerate(zip(tokens, expected, strict=False)):
        if one != other:
            return position
    return min(len(tokens), len(expected))


def _margin(logits: Tensor) -> float:
    best, second = torch.topk(logits, 2).values.tolist()
    return best - second
