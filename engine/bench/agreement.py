"""Checks whether all contestants wrote the same text. Greedy text is unique, except for rounding at near ties."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.bench.suite import Result

NEAR_TIE = 1e-4
"""The largest lead of the best logit over the second-best logit that rounding may reverse."""


@dataclass(frozen=True)
class Difference:
    """The first token at which a contestant's text differs from the reference's. position: the token's index in the
    continuation. margin: the reference's best logit at this position minus its second-best logit. numerics: whether the
    margin is below ``NEAR_TIE``, so that rounding explains the difference."""

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
    """The differences between the texts of every contestant and those of the reference, in the first round.

    reference: the contestant's name. logits(tokens): the reference's logits [V] after these tokens.
    """
    first = [result for result in results if result.round == 0]
    right = {r.prompt.name: r.writing.tokens for r in first if r.contestant == reference}
    different = []
    for result in first:
        expected = right[result.prompt.name]
        position = first_difference(result.writing.tokens, expected)
        if position is not None:
            margin = _margin(logits([*result.prompt.tokens, *expected[:position]]))
            different.append(Difference(result.contestant, result.prompt.name, position, margin))
    return different


def first_difference(tokens: Sequence[int], expected: Sequence[int]) -> int | None:
    """The index of the first token that differs; None if the texts are equal. A text that ends early differs at its
    end."""
    if list(tokens) == list(expected):
        return None
    for position, (token, expected_token) in enumerate(zip(tokens, expected, strict=False)):
        if token != expected_token:
            return position
    return min(len(tokens), len(expected))


def _margin(logits: Tensor) -> float:
    best, second = torch.topk(logits, 2).values.tolist()
    return best - second
