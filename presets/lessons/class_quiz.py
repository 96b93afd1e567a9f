"""The closing quiz with the numbers of a class, outside a browser. A class number gives the same questions, numbers and
order of choices as on the page (viz/web/learn/quiz.js; a test compares the two)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from presets.lessons.quiz import quiz

Random = Callable[[], float]
"""Returns a new random number in [0, 1) at each call."""
WORD = 0xFFFFFFFF
MILLION = 1e6


ANSWERS: dict[str, Callable[..., float]] = {
    "speedup": lambda alpha, c, k: sum(alpha**depth for depth in range(int(k) + 1)) / (1 + c * k),
    "keeping": lambda p, q: min(1.0, p / q),
    "plain": lambda gigabytes, bandwidth: 1000 * gigabytes / bandwidth,
}
"""Name -> function that computes the answer of a question, from the numbers that are drawn for it."""


@dataclass(frozen=True)
class Question:
    """A question of the quiz. words: the question. why: the explanation after the answer. answer: a number, or the
    place of the right choice, from 1. near: the largest error of a number that counts as right."""

    words: str
    why: str
    answer: float
    choices: list[str] = field(default_factory=list)
    near: float = 0.0
    unit: str = ""

    def told(self) -> str:
        """Return the question and its choices, or the hint for a number, one per line."""
        choices = [f"   {place}. {choice}" for place, choice in enumerate(self.choices, 1)]
        number = f"   A number{f' ({self.unit})' if self.unit else ''}, to two decimals."
        return "\n".join([self.words, *(choices or [number])])

    def is_right(self, given: float | None) -> bool:
        if given is None:
            return False
        return abs(given - self.answer) <= self.near + 1e-9

    def judged(self, given: float | None) -> str:
        """Return the comment on an answer; None: not answered."""
        if given is None:
            return "Not answered yet."
        if self.is_right(given):
            return f"Right. {self.why}"
        right = self.choices[int(self.answer) - 1] if self.choices else f"{self.answer:.2f}"
        return f"Not so: {f'{right} {self.unit}'.strip()}. {self.why}"


def class_quiz(number: int) -> list[Question]:
    """Return the questions of the class with this number."""
    random = seeded(number)
    return [_question(spec, random) for spec in quiz()["questions"]]


def marked(questions: Sequence[Question], answers: Mapping[int, float | None]) -> str:
    """Return the comments on the answers, and how many answers are right. answers: place of a question, from 1 ->
    answer."""
    pairs = [(question, answers.get(place)) for place, question in enumerate(questions, 1)]
    lines = [f"{place}. {question.judged(own)}" for place, (question, own) in enumerate(pairs, 1)]
    right = sum(question.is_right(own) for question, own in pairs)
    return "\n".join([*lines, f"{right} of {len(questions)} right."])


def _question(spec: Mapping, random: Random) -> Question:
    numbers = {name: _drawn(random, *span) for name, span in spec.get("numbers", {}).items()}
    words = re.sub(
        r"\{(\w+)\}",
        lambda found: f"{numbers[found[1]]:g}" if found[1] in numbers else found[0],
        spec["ask"],
    )
    if "compute" in spec:
        answer = ANSWERS[spec["compute"]](**numbers)
        return Question(words, spec["why"], answer, near=spec["near"], unit=spec.get("unit", ""))
    order = shuffled(range(len(spec["choices"])), random)
    choices = [spec["choices"][place] for place in order]
    return Question(words, spec["why"], 1 + order.index(spec["value"]), choices)


def _drawn(random: Random, low: float, high: float, step: float) -> float:
    count = math.floor((high - low) / step + 0.5) + 1
    return math.floor((low + math.floor(random() * count) * step) * MILLION + 0.5) / MILLION


def seeded(seed: int) -> Random:
    """Return a random generator with this seed: mulberry32, which has a state of 32 bits."""
    state = seed & WORD

    def random() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & WORD
        mixed = ((state ^ state >> 15) * (state | 1)) & WORD
        mixed ^= (mixed + (mixed ^ mixed >> 7) * (mixed | 61)) & WORD
        return (mixed ^ mixed >> 14) / 2**32

    return random


def shuffled(items: Sequence, random: Random) -> list:
    """Return the items in a random order."""
    mixed = list(items)
    for i in range(len(mixed) - 1, 0, -1):
        j = math.floor(random() * (i + 1))
        mixed[i], mixed[j] = mixed[j], mixed[i]
    return mixed
