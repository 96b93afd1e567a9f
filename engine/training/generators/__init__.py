"""Generators of unlimited text: each module makes (prompt, answer) examples of one workload from a seeded random
generator.

A hash of an example's prompt decides whether the example is held out. Training never uses held-out examples, and the
shipped files in `presets/prompts` have only held-out examples. So no shipped prompt can occur in the training text of
the generators.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from engine.training.generators import arithmetic, chat, code, edits, operations, records
from engine.training.generators.words import Vocabulary, is_held_out

__all__ = ["ALL_MAKERS", "DRILLS", "MAKERS", "Example", "examples", "is_held_out"]
# Workload -> its generator; each workload has a file of shipped prompts.
MAKERS = {
    "arithmetic": arithmetic.make,
    "code": code.make,
    "template": records.make,
    "operations": operations.make,
    "edit": edits.make,
}
# Generators of a single kind of example, for trainings that need more of this kind.
DRILLS = {"append": edits.append, "replace": operations.replace}
ALL_MAKERS = MAKERS | {"chat": chat.make} | DRILLS


@dataclass(frozen=True)
class Example:
    """A document and its workload. A text from a corpus has an empty prompt, and the whole text is the answer."""

    workload: str
    prompt: str
    answer: str

    @property
    def text(self) -> str:
        return self.prompt + self.answer


def examples(
    workload: str, seed: int, vocabulary: Vocabulary, held_out: bool = False
) -> Iterator[Example]:
    """An endless stream of examples of one workload, the same for the same seed. held_out: True: all of them are held
    out; False: none of them is."""
    rng = random.Random(f"{workload}/{seed}")
    while True:
        prompt, answer = ALL_MAKERS[workload](rng, vocabulary)
        if is_held_out(prompt) == held_out:
            yield Example(workload, prompt, answer)
