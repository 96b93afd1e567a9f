"""The time and memory of a lookup, by the length of the text that is searched."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from engine.core.chance import DraftChance
from engine.core.drafter import Start
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.methods import drafter as drafter_class
from engine.methods.rapid.retrieved_prompt import shortened
from engine.methods.rasd.retrieved_tree import frequent
from engine.methods.shared.datastore_part import Datastore
from engine.parts.loading import Models

LOOKUPS = 200  # of which the median is taken
DEPTH = 16  # longest branch that is drafted
OWN_TEXT = ("prompt_lookup", "suffix", "aded")
"""Drafters that search the text itself; their ``index`` knows its size in bytes."""


@dataclass(frozen=True)
class Lookup:
    """The cost of a lookup in a text of ``tokens`` tokens. bytes: the size of the index; None where there
    is none."""

    tokens: int
    what: str
    microseconds: float
    bytes: int | None


def lookup_costs(models: Models, length: int, texts: Sequence[str]) -> list[Lookup]:
    """The costs of every structure, in a text of ``length`` tokens made of these texts in random order."""
    text = long_text(models, length + LOOKUPS, texts)
    found = [_drafter(models, key, text, length) for key in OWN_TEXT]
    return [*found, _datastore(text, length), _short_prompt(text, length)]


def long_text(models: Models, length: int, texts: Sequence[str]) -> list[int]:
    encoded = [models.target.tokenizer(text)["input_ids"] for text in texts]
    rng, tokens = random.Random(0), []
    while len(tokens) < length:
        tokens += rng.choice(encoded)
    return tokens


def timed(action: Callable[[int], object], places: Sequence[int]) -> float:
    """Median microseconds of ``action`` over these places of the text."""
    taken = []
    for place in places:
        began = time.perf_counter()
        action(place)
        taken.append(1e6 * (time.perf_counter() - began))
    return median(taken)


def _drafter(models: Models, key: str, text: Sequence[int], length: int) -> Lookup:
    """One proposal after each of ever longer beginnings of the text."""
    cls = drafter_class(key)
    drafter = cls.build(resolve(key, cls.options, {}), models)
    drafter.begin(Start(text[:length], Sampling(), DraftChance(0)))
    drafter.propose(text[:length], DEPTH)
    contexts = {end: text[:end] for end in range(length + 1, length + LOOKUPS + 1)}
    spent = timed(lambda end: drafter.propose(contexts[end], DEPTH), list(contexts))
    return Lookup(length, key, spent, drafter.index.nbytes)


def _datastore(text: Sequence[int], length: int) -> Lookup:
    """Finding the text's end in a datastore, and building the tree of its continuations."""
    store = Datastore(np.array(text[:length]))

    def look_up(end: int) -> None:
        found = store.longest(text[end - DEPTH : end], DEPTH)
        if found is not None:
            frequent(store.continuations(found, DEPTH), DEPTH)

    places = random.Random(1).choices(range(DEPTH, length), k=LOOKUPS)
    return Lookup(length, "rasd: datastore", timed(look_up, places), store.nbytes)


def _short_prompt(text: Sequence[int], length: int) -> Lookup:
    """Choosing the pieces of a prompt by BM25: once per text, not once per step."""
    spent = timed(lambda _: shortened(text[:length], 64, 32, 128), range(3))
    return Lookup(length, "rapid: once a text", spent, None)
