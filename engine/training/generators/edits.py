"""Examples of edits: the prompt has a text, and the answer repeats it with one change."""

from __future__ import annotations

import random
import re

from engine.training.generators import code
from engine.training.generators.words import (
    ADJECTIVES,
    ANIMALS,
    COLOURS,
    NAMES,
    PLACES,
    THINGS,
    VERBS,
    Vocabulary,
    paragraph,
)

WORD_KINDS = [NAMES, ANIMALS, THINGS, COLOURS, ADJECTIVES, PLACES, VERBS]


def _change_word(rng: random.Random, text: str) -> tuple[str, str, str] | None:
    """A change of one word, as (old word, new word of the same kind, edited text); None if the text has no word of
    ``WORD_KINDS``."""
    present = set(re.findall(r"\w+", text))
    candidates = [(word, kind) for kind in WORD_KINDS for word in kind if word in present]
    if not candidates:
        return None
    old, kind = rng.choice(candidates)
    new = rng.choice([word for word in kind if word != old])
    return old, new, re.sub(rf"\b{old}\b", new, text)


def change(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    while True:
        text = paragraph(rng, vocabulary, 1, 6)
        changed = _change_word(rng, text)
        if changed:
            old, new, edited = changed
            return f"Edit: change {old} to {new}.\nText: {text}\nOutput:", f" {edited}"


def rename(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    while True:
        prompt, body = code.make(rng, vocabulary)
        source = prompt.rsplit("\n", 1)[-1] + body
        match = re.search(r"def (\w+)\(", source)
        if match:
            old = match.group(1)
            new = rng.choice(
                ["f", "g", "run", "solve", "helper", "compute", f"my_{old}", f"{old}_fast"]
            )
            renamed = re.sub(rf"\b{old}\b", new, source)
            return f"Edit: rename {old} to {new}.\nCode:\n{source}\nOutput:\n", renamed


def append(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    text, extra = paragraph(rng, vocabulary, 1, 4), paragraph(rng, vocabulary, 1, 1)
    while '"' in extra:  # in the prompt the sentence stands between quotation marks
        extra = paragraph(rng, vocabulary, 1, 1)
    return (
        f'Edit: add the sentence "{extra}" at the end.\nText: {text}\nOutput:',
        f" {text} {extra}",
    )


KINDS = [change, rename, append]
WEIGHTS = [6, 1.5, 1]


def make(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    return rng.choices(KINDS, WEIGHTS)[0](rng, vocabulary)
