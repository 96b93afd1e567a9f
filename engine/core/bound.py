"""A text under a constraint, for a rule that does more with the constraint than see its mask."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.constraint import Constraint
from engine.core.memory import Memory

MASKED = "masked decoding"
"""The law that an exact rule keeps where p and q are cut to the allowed tokens at every place. It is not the target's law of
texts, given that the text is valid: that one would weigh each token by the chance that a valid text follows it (Park et al. 2024)."""
BEGUN = "the target’s own texts that begin so"
"""The law that an exact rule keeps where the end of the prompt is healed (``engine.chat.prompt_end``)."""


@dataclass(frozen=True)
class Bound:
    """free: [N+1, V] logits of the target without the constraint. prompt: tokens before the text. text: its committed
    tokens. target: what tells it from other targets. memory: the visitor's."""

    constraint: Constraint
    free: Tensor
    prompt: Sequence[int]
    text: Sequence[int]
    target: Hashable
    memory: Memory
