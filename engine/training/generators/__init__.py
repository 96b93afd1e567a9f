"""Unlimited text: each module makes (prompt, answer) examples of one workload from a seeded generator.

An example is held out by a hash of its prompt, so training text and the prompts that ship in `presets/prompts`
can never overlap: training drops the held-out examples, and the prompt files hold nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from engine.training.generators import arithmetic, chat, code, edits, operations, records
from engine.training.generators.words import Vocabulary, is_held_out

__all__ = ["ALL_MAKERS", "DRILLS", "MAKERS", "Example", "examples", "is_held_out"]
# The workloads, each with a file of shipped prompts.
MAKERS = {
    "arithmetic": arithmetic.make,
    "code": code.make,
    "template": records.make,
    "operations": operations.make,
    "edit": edits.make,
}
# Single kinds of examples, for a training that needs more of them.
DRILLS = {"append": edits.append, "replace": operations.replace}
ALL_MAKERS = MAKERS | {"chat": chat.make} | DRILLS


@dataclass(frozen=True)
class Example:
    """A text of a corpus is an answer without a prompt."""

    workload: str
    prompt: str
    answer: str

    @property
    def text(self) -> str:
        return self.prompt + self.answer


def examples(
    workload: str, seed: int, vocabulary: Vocabulary, held_out: bool = False
) -> Iterator[Example]:
    """An endless stream of examples of one workload; the same seed gives the same stream."""
    rng = random.Random(f"{workload}/{seed}")
    while True:
        prompt, answer = ALL_MAKERS[workload](rng, vocabulary)
        if is_held_out(prompt) == held_out:
            yield Example(workload, prompt, answer)
