"""Short films of small scenes: up to three things, of which one or two go from cell to cell, come or leave.

A digest of the film's content decides whether it is held out from training, as for scenes.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np

from engine.scenes.scene import (
    CELLS,
    COLOURS,
    DIGIT_SHARE,
    DIGITS,
    HELD_OUT,
    SHAPES,
    Scene,
    Thing,
    finished,
    paper,
    stamp,
)

FRAMES = 8
MOST = 3  # the most things
ABSENT = -1  # the cell of a thing that has not come, or has left
WAYS, CHANCES = ("goes", "comes", "leaves", "stays"), (0.65, 0.15, 0.1, 0.1)
"""The movements of the first thing, and the probability of each. The second thing goes or stays, the third stays."""


class Actor(NamedTuple):
    """A thing in a film. cells: its cell in each frame, counted row by row, or ``ABSENT``."""

    colour: str
    shape: str
    cells: tuple[int, ...]

    @property
    def first(self) -> int:
        return self.cells[0]

    @property
    def last(self) -> int:
        return self.cells[-1]

    @property
    def goes(self) -> bool:
        return ABSENT not in self.cells and self.first != self.last


Film = tuple[Actor, ...]
"""The actors, sorted by the cell in which each is first seen."""


def invent_film(generator: np.random.Generator) -> Film:
    """A film of one to three actors. No two have the same colour and shape, and no two are ever in the same cell."""
    while (film := _tried(generator)) is None:
        pass
    return film


def _tried(generator: np.random.Generator) -> Film | None:
    colours, actors = list(COLOURS), []
    for number in range(int(generator.integers(1, MOST + 1))):
        shapes = DIGITS if generator.random() < DIGIT_SHARE else SHAPES
        colour, shape = (names[int(generator.integers(len(names)))] for names in (colours, shapes))
        if number == 0:
            way = str(generator.choice(WAYS, p=CHANCES))
        else:
            way = "goes" if number == 1 and generator.random() < 0.4 else "stays"
        actors.append(Actor(colour, shape, _path(way, generator)))
    if len({actor[:2] for actor in actors}) < len(actors):
        return None
    for cells in zip(*(actor.cells for actor in actors), strict=True):
        there = [cell for cell in cells if cell != ABSENT]
        if len(set(there)) < len(there):
            return None
    return tuple(sorted(actors, key=lambda actor: seen_first(actor)))


def _path(way: str, generator: np.random.Generator) -> tuple[int, ...]:
    """The cells of an actor. An actor that goes takes one step or two, each to a neighbouring cell, at random
    frames."""
    start, end = (int(cell) for cell in generator.choice(CELLS * CELLS, 2, replace=False))
    when = int(generator.integers(1, FRAMES))
    if way == "stays":
        return (start,) * FRAMES
    if way == "comes":
        return (ABSENT,) * when + (start,) * (FRAMES - when)
    if way == "leaves":
        return (start,) * when + (ABSENT,) * (FRAMES - when)
    between = _between(start, end)
    later = int(generator.integers(1, FRAMES))
    early, late = sorted((when, later))
    return (start,) * early + (between,) * (late - early) + (end,) * (FRAMES - late)


def _between(start: int, end: int) -> int:
    """The next cell on the way from start to end; the end itself if it is beside the start."""
    (row, column), (down, right) = divmod(start, CELLS), divmod(end, CELLS)
    return (row + _sign(down - row)) * CELLS + column + _sign(right - column)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def seen_first(actor: Actor) -> int:
    """The cell in which the actor is first seen."""
    return next(cell for cell in actor.cells if cell != ABSENT)


def frame_of(film: Film, frame: int) -> Scene:
    """The scene that one frame shows."""
    there = [actor for actor in film if actor.cells[frame] != ABSENT]
    things = [Thing(actor.cells[frame], actor.colour, actor.shape) for actor in there]
    return tuple(sorted(things))


def is_held_out_film(film: Film) -> bool:
    """Whether the film is held out, so that no training may draw it."""
    return zlib.crc32(repr([tuple(actor) for actor in film]).encode()) % HELD_OUT == 0


def invent_film_for(generator: np.random.Generator, held_out: bool) -> Film:
    """A new film that is held out, or a new film that is not."""
    while is_held_out_film(film := invent_film(generator)) is not held_out:
        pass
    return film


def numbered_film(number: int) -> tuple[Film, np.ndarray]:
    """The held-out film with this number, and its frames as ``draw_film`` draws them."""
    generator = np.random.default_rng((1_000_000_009, number))
    film = invent_film_for(generator, held_out=True)
    return film, draw_film(film, generator)


def draw_film(film: Film, generator: np.random.Generator) -> np.ndarray:
    """uint8 [FRAMES * SIDE, SIDE, 3]: the frames, one below the other. A thing looks the same in all frames."""
    ground = paper(generator)
    frames = np.stack([ground] * FRAMES)
    for actor in film:
        draw_into = stamp(actor.colour, actor.shape, generator)
        for picture, cell in zip(frames, actor.cells, strict=True):
            if cell != ABSENT:
                draw_into(picture, cell)
    return finished(frames).reshape(-1, *ground.shape[1:])
