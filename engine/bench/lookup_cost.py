"""Measures the time and memory of a lookup, by the length of the text that is searched."""

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

LOOKUPS = 200  # the time of a lookup is the median of so many
DEPTH = 16  # longest branch that is drafted
ONCE = 3  # the time at the beginning of a text is the median of so many texts


@dataclass(frozen=True)
class Lookup:
    """The cost of a lookup in a text of ``tokens`` tokens. what: the drafter. microseconds: the median time. bytes: the
    size of the index; None without an index."""

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
    """The costs of every lookup structure, in a text of ``length`` tokens that is made of ``texts`` in random order.

    Drafters that keep an index of the text or of a datastore are timed while they propose. Retrieval drafters whose
    keys are in ``once`` search only when a text begins; what is timed is their method ``begin``.
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
    """The median time of a call of ``action``, in microseconds. ``action`` is called once with each of these positions
    of the text."""
    microseconds = []
    for place in places:
        began = time.perf_counter()
        action(place)
        microseconds.append(1e6 * (time.perf_counter() - began))
    return median(microseconds)


def _proposals(
    cls: type[Drafter], models: Models, text: Sequence[int], ends: Sequence[int], key: str
) -> list[Lookup]:
    """The cost of a proposal, as a list of one; an empty list if the drafter has no index.

    ends: the lengths of the prefixes of the text after each of which the drafter proposes. The drafter begins with all
    of the text but its last ``LOOKUPS`` tokens.
    """
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
