"""The time and memory of a lookup, by the length of the text that is searched."""

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from engine.core.chance import DraftChance
from engine.core.drafter import Drafter, Start
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.methods.shared.datastore_part import Datastore
from engine.parts.loading import Models

LOOKUPS = 200  # of which the median is taken
DEPTH = 16  # longest branch that is drafted
ONCE = 3  # texts begun, of which the median is taken


@dataclass(frozen=True)
class Lookup:
    """The cost of a lookup in a text of ``tokens`` tokens. bytes: the size of the index; None where there
    is none."""

    tokens: int
    what: str
    microseconds: float
    bytes: int | None


def lookup_costs(
    models: Models,
    classes: Mapping[str, type[Drafter]],
    once: Collection[str],
    length: int,
    texts: Sequence[str],
) -> list[Lookup]:
    """The costs of every structure, in a text of ``length`` tokens made of these texts in random order.

    Of drafters that search the text itself or a datastore and keep an index of it, a proposal is timed; of those in
    ``once``, the beginning of a text, in which they search.
    """
    text, costs = long_text(models, length + LOOKUPS, texts)[: length + LOOKUPS], []
    store = Datastore(np.array(text[:length]))
    for key, cls in classes.items():
        if not cls.needs:
            costs += _proposals(cls, models, text, range(length + 1, length + LOOKUPS + 1), key)
        elif set(cls.needs.values()) == {"datastore"}:
            stored = Models(models.target, dict.fromkeys(cls.needs, store))
            places = random.Random(1).choices(range(DEPTH, length), k=LOOKUPS)
            costs += _proposals(cls, stored, text, places, key)
        elif key in once and cls.family == "retrieval":
            drafter = cls.build(resolve(key, cls.options, {}), models)
            spent = timed(lambda _, drafter=drafter: _begin(drafter, text[:length]), range(ONCE))
            costs.append(Lookup(length, f"{key}: once a text", spent, None))
    return costs


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


def _proposals(
    cls: type[Drafter], models: Models, text: Sequence[int], ends: Sequence[int], key: str
) -> list[Lookup]:
    """A proposal after each of these beginnings of the text, of which the last ``LOOKUPS`` tokens are new to the drafter;
    nothing for a drafter without an index."""
    drafter, length = cls.build(resolve(key, cls.options, {}), models), len(text) - LOOKUPS
    _begin(drafter, text[:length])
    if not hasattr(drafter, "index"):
        return []
    drafter.propose(text[:length], DEPTH)
    contexts = {end: text[:end] for end in ends}
    spent = timed(lambda end: drafter.propose(contexts[end], DEPTH), list(contexts))
    return [Lookup(length, key, spent, drafter.index.nbytes)]


def _begin(drafter: Drafter, text: Sequence[int]) -> None:
    drafter.begin(Start(text, Sampling(), DraftChance(0)))
