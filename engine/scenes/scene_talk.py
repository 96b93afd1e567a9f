"""Questions about a scene, with the right answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from engine.scenes.scene import CELLS, COLOURS, DIGITS, MOST, SHAPES, Scene, Thing

PLACES = (
    *("at the top left", "at the top", "at the top right"),
    *("at the left", "in the middle", "at the right"),
    *("at the bottom left", "at the bottom", "at the bottom right"),
)
"""The place of each cell, in words."""
DESCRIBE = "describe the picture."
NUMBERS = ("no", *DIGITS[1 : MOST + 1])
KINDS = ("caption", "count", "colour", "place", "content")


class Asked(NamedTuple):
    """A question with its answer. kind: one of ``KINDS``."""

    kind: str
    question: str
    answer: str


def caption(scene: Scene) -> str:
    """A sentence on every thing with its colour and its place, in the order of the places."""
    clauses = [f"{a_thing(thing)} {PLACES[thing.cell]}" for thing in scene]
    before = ", ".join(clauses[:-1])
    return f"{before} and {clauses[-1]}." if before else f"{clauses[-1]}."


def describe(scene: Scene, generator: np.random.Generator) -> Asked:
    return Asked("caption", DESCRIBE, caption(scene))


def count(scene: Scene, generator: np.random.Generator) -> Asked:
    """A question about the number of things of a shape, of a colour, or in all."""
    by = generator.choice(["shape", "colour", "all"], p=[0.45, 0.4, 0.15])
    if by == "shape":
        shape = _likely_there([thing.shape for thing in scene], (*SHAPES, *DIGITS), generator)
        number, noun, more = sum(t.shape == shape for t in scene), shape, plural(shape)
    elif by == "colour":
        colour = _likely_there([thing.colour for thing in scene], tuple(COLOURS), generator)
        number = sum(thing.colour == colour for thing in scene)
        noun, more = f"{colour} thing", f"{colour} things"
    else:
        number, noun, more = len(scene), "thing", "things"
    said = f"there is one {noun}." if number == 1 else f"there are {NUMBERS[number]} {more}."
    return Asked("count", f"how many {more} are there?", said)


def colour(scene: Scene, generator: np.random.Generator) -> Asked | None:
    """A question about the colour of a thing whose shape no other thing has."""
    thing = _single(scene, lambda thing: thing.shape, generator)
    if thing is None:
        return None
    question = f"what colour is the {thing.shape}?"
    return Asked("colour", question, f"the {thing.shape} is {thing.colour}.")


def place(scene: Scene, generator: np.random.Generator) -> Asked | None:
    """A question about the place of a thing whose colour and shape no other thing has."""
    thing = _single(scene, lambda thing: (thing.colour, thing.shape), generator)
    if thing is None:
        return None
    name = f"the {thing.colour} {thing.shape}"
    return Asked("place", f"where is {name}?", f"{name} is {PLACES[thing.cell]}.")


def content(scene: Scene, generator: np.random.Generator) -> Asked:
    """A question about the thing that stands at a place."""
    cells = [thing.cell for thing in scene]
    cell = int(_likely_there(cells, range(CELLS * CELLS), generator))
    there = next((a_thing(thing) for thing in scene if thing.cell == cell), "nothing")
    return Asked("content", f"what is {PLACES[cell]}?", f"{there} is {PLACES[cell]}.")


ASKERS: tuple[Callable[[Scene, np.random.Generator], Asked | None], ...] = (
    *(describe, count, colour, place, content),
)


def asked(kind: str, scene: Scene, generator: np.random.Generator) -> Asked | None:
    """A question of this kind about the scene; None if the scene has no thing that it could be about."""
    return ASKERS[KINDS.index(kind)](scene, generator)


def plural(shape: str) -> str:
    return f"{shape}es" if shape in ("cross", "six") else f"{shape}s"


def words() -> list[str]:
    """All words that questions and answers may hold, sorted."""
    other_words = f"a and are colour describe how in is many no nothing one picture the there thing things what where {DESCRIBE[:-1]}"
    every = [*other_words.split(), *" ".join(PLACES).split(), *COLOURS, *SHAPES, *DIGITS]
    return sorted({*every, *map(plural, (*SHAPES, *DIGITS))})


def a_thing(thing) -> str:
    return f"a {thing.colour} {thing.shape}"


def _likely_there(there: Sequence, known: Sequence, generator: np.random.Generator):
    """A random entry: from ``there``, which the scene holds, in three of four cases, otherwise from ``known``."""
    chosen = there if generator.random() < 0.75 else known
    return chosen[int(generator.integers(len(chosen)))]


def _single(scene: Scene, key: Callable, generator: np.random.Generator) -> Thing | None:
    often = Counter(map(key, scene))
    alone: Iterable[Thing] = [thing for thing in scene if often[key(thing)] == 1]
    return alone[int(generator.integers(len(alone)))] if alone else None
