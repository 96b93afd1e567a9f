"""Examples of operations on texts and lists, in fixed formats: copy, reverse, sort, shuffle, replace, remove, number,
join, repeat.

A model should learn to copy in general, and not word by word. So many of the texts are random words and digits. These
can only be repeated by induction: finding the earlier occurrence of a token, and writing the token that followed it.
"""

from __future__ import annotations

import random

from engine.training.generators.words import Vocabulary, paragraph, sentence, word_list


def _any_text(rng: random.Random, vocabulary: Vocabulary) -> str:
    kind = rng.random()
    if kind < 0.30:
        return sentence(rng, vocabulary)
    if kind < 0.38:
        return paragraph(rng, vocabulary, 2, 5)
    if kind < 0.82:
        return " ".join(rng.choice(vocabulary.words) for _ in range(rng.randint(2, 40)))
    if kind < 0.90:
        return " ".join(
            str(rng.randint(0, 10 ** rng.randint(1, 5))) for _ in range(rng.randint(2, 12))
        )
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join(
        "".join(rng.choice(letters) for _ in range(rng.randint(2, 7)))
        for _ in range(rng.randint(1, 10))
    )


def _items(rng: random.Random, vocabulary: Vocabulary, low: int = 2, high: int = 9) -> list[str]:
    return word_list(rng, vocabulary, rng.randint(low, high))


def copy(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    if rng.random() < 0.2:
        lines = "".join(f"- {item}\n" for item in _items(rng, vocabulary, 2, 12))
        return f"Copy:\n{lines}Output:\n", lines.rstrip("\n")
    text = _any_text(rng, vocabulary)
    return f"Copy: {text}\nOutput:", f" {text}"


def reverse(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    items = _items(rng, vocabulary)
    return f"Reverse: {' '.join(items)}\nOutput:", f" {' '.join(reversed(items))}"


def sort(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    items = (
        [str(rng.randint(0, 99)) for _ in range(rng.randint(2, 9))]
        if rng.random() < 0.4
        else _items(rng, vocabulary)
    )
    ordered = sorted(items, key=int) if items[0].isdigit() else sorted(items, key=str.lower)
    return f"Sort: {' '.join(items)}\nOutput:", f" {' '.join(ordered)}"


def shuffle(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    """An example of shuffling a list, a task of ParallelBench. Any order is right, so the target should give many
    tokens a considerable probability."""
    items = _items(rng, vocabulary, 3, 7)
    return f"Shuffle: {' '.join(items)}\nOutput:", f" {' '.join(rng.sample(items, len(items)))}"


def replace(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    items = _items(rng, vocabulary, 3, 9)
    old, new = rng.choice(items), rng.choice(vocabulary.words)
    items += [old] * rng.randint(0, 2)
    rng.shuffle(items)
    changed = [new if item == old else item for item in items]
    return f"Replace {old} with {new}: {' '.join(items)}\nOutput:", f" {' '.join(changed)}"


def remove(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    items = _items(rng, vocabulary, 3, 9)
    gone = rng.choice(items)
    left = [item for item in items if item != gone]
    return f"Remove {gone}: {' '.join(items)}\nOutput:", f" {' '.join(left)}"


def number(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    items = _items(rng, vocabulary)
    return f"Number: {', '.join(items)}\nOutput:\n", "\n".join(
        f"{i}. {item}" for i, item in enumerate(items, 1)
    )


def join(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    items = _items(rng, vocabulary)
    lines = "".join(f"- {item}\n" for item in items)
    return f"Join:\n{lines}Output:", f" {', '.join(items)}"


def repeat(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    text, times = _any_text(rng, vocabulary), rng.randint(2, 4)
    return f"Repeat {times} times: {text}\nOutput:\n", "\n".join([text] * times)


KINDS = [copy, reverse, sort, shuffle, replace, remove, number, join, repeat]
WEIGHTS = [4, 2.5, 7, 3, 4.5, 4, 1, 1, 1.5]


def make(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    return rng.choices(KINDS, WEIGHTS)[0](rng, vocabulary)
