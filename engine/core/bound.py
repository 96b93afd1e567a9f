"""A constraint together with its text, for rules that need more of a constraint than its mask."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.constraint import Constraint
from engine.core.memory import Memory

MASKED = "masked decoding"
"""The law that an exact rule keeps where p and q are restricted to the allowed tokens at every position. It differs
from the target's law of texts conditioned on being valid: that law would weight each token by the probability that a
valid text follows it (Park et al. 2024)."""
BEGUN = "the target’s own texts that begin so"
"""The law that an exact rule keeps where the last tokens of the prompt are healed (``engine.chat.prompt_end``)."""


@dataclass(frozen=True)
class Bound:
    """A constraint and the text that it applies to.

    free: [N+1, V] logits of the target without the constraint. prompt: the tokens before the text. text: the committed
    tokens of the text. target: an identifier of the target. memory: the visitor's memory.
    """

    constraint: Constraint
    free: Tensor
    prompt: Sequence[int]
    text: Sequence[int]
    target: Hashable
    memory: Memory
