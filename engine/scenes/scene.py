"""Small scenes drawn by code: up to four things, each with a shape or digit, a colour and a place.

A digest of the scene's content decides whether it is held out, so that no training draws it in any variation.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

SIDE = 48  # pixels
CELLS = 3  # per side; a thing stands in a cell
PITCH = SIDE // CELLS
MOST = 4  # the most things
COLOURS = {
    "red": (214, 40, 40),
    "green": (44, 150, 60),
    "blue": (40, 80, 214),
    "yellow": (240, 200, 30),
    "purple": (140, 50, 170),
    "black": (25, 25, 28),
}
SHAPES = ("circle", "square", "triangle", "cross", "ring")
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGIT_SHARE = 0.3  # the share of things that are digits
HELD_OUT = 10  # one scene in ten is held out

_SEGMENTS = (
    "abcdef",
    "bc",
    "abged",
    "abgcd",
    "fgbc",
    "afgcd",
    "afgedc",
    "abc",
    "abcdefg",
    "abcdfg",
)
_LINES = {
    "a": (-0.5, -0.9, 0.5, -0.9),
    "b": (0.5, -0.9, 0.5, 0),
    "c": (0.5, 0, 0.5, 0.9),
    "d": (-0.5, 0.9, 0.5, 0.9),
    "e": (-0.5, 0, -0.5, 0.9),
    "f": (-0.5, -0.9, -0.5, 0),
    "g": (-0.5, 0, 0.5, 0),
}
"""The seven strokes of a digit, each from x, y to x, y, in a box from -1 to 1 with y downwards."""


class Thing(NamedTuple):
    """A thing in a scene. cell: its place, counted row by row."""

    cell: int
    colour: str
    shape: str


Scene = tuple[Thing, ...]
"""The things, sorted by their cells."""


def invent(generator: np.random.Generator) -> Scene:
    """A scene of one to four things, each in a cell of its own."""
    count = int(generator.integers(1, MOST + 1))
    cells = np.sort(generator.choice(CELLS * CELLS, count, replace=False))
    colours, things = list(COLOURS), []
    for cell in cells:
        shapes = DIGITS if generator.random() < DIGIT_SHARE else SHAPES
        colour, shape = (str(generator.choice(names)) for names in (colours, shapes))
        things.append(Thing(int(cell), colour, shape))
    return tuple(things)


def is_held_out(scene: Scene) -> bool:
    """Whether the scene is held out, so that no training may draw it."""
    return zlib.crc32(repr([tuple(thing) for thing in scene]).encode()) % HELD_OUT == 0


def invent_for(generator: np.random.Generator, held_out: bool) -> Scene:
    """A new scene that is held out, or a new scene that is not."""
    while is_held_out(scene := invent(generator)) is not held_out:
        pass
    return scene


def numbered(number: int) -> tuple[Scene, np.ndarray]:
    """The held-out scene with this number, and its picture as ``draw`` draws it. Equal numbers give equal pictures."""
    generator = np.random.default_rng((1_000_000_007, number))
    scene = invent_for(generator, held_out=True)
    return scene, draw(scene, generator)


def draw(scene: Sequence[Thing], generator: np.random.Generator) -> np.ndarray:
    """uint8 [SIDE, SIDE, 3]: the things on light paper, with random sizes, offsets and shades."""
    picture = paper(generator)
    for thing in scene:
        stamp(thing.colour, thing.shape, generator)(picture, thing.cell)
    return finished(picture)


def paper(generator: np.random.Generator) -> np.ndarray:
    """The background, float [SIDE, SIDE, 3]."""
    light = generator.uniform(215, 250) + generator.uniform(-5, 5, 3)
    return np.broadcast_to(light, (SIDE, SIDE, 3)) + generator.normal(0, 3, (SIDE, SIDE, 3))


def stamp(
    colour: str, shape: str, generator: np.random.Generator
) -> Callable[[np.ndarray, int], None]:
    """A function that draws the same thing into a cell of a picture, float [SIDE, SIDE, 3], each time it is called."""
    size, (right, down) = generator.uniform(5.2, 6.4), generator.uniform(-1, 1, 2)
    y, x = (_AXIS[:, None] - down) / size, (_AXIS[None] - right) / size
    ink = np.clip(0.5 - size * _outside(shape, x, y), 0, 1)[..., None]
    shade = np.array(COLOURS[colour]) + generator.uniform(-18, 18, 3)

    def draw_into(picture: np.ndarray, cell: int) -> None:
        row, column = divmod(cell, CELLS)
        part = picture[row * PITCH :, column * PITCH :][:PITCH, :PITCH]
        part[:] = part * (1 - ink) + shade * ink

    return draw_into


def finished(picture: np.ndarray) -> np.ndarray:
    """The picture as uint8. picture: float, of any shape."""
    return np.clip(picture, 0, 255).round().astype(np.uint8)


_AXIS = np.arange(PITCH) - (PITCH - 1) / 2


def _outside(shape: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The approximate distance of each point outside the shape, which has size 1; negative inside."""
    if shape in DIGITS:
        segments = [_LINES[name] for name in _SEGMENTS[DIGITS.index(shape)]]
        return np.minimum.reduce([_distance(x, y, *segment) for segment in segments]) - 0.17
    across, high = abs(x), abs(y)
    if shape == "circle":
        return np.hypot(x, y) - 1
    if shape == "square":
        return np.maximum(across, high) - 0.9
    if shape == "triangle":
        return np.maximum(0.884 * across - 0.467 * (y + 1), y - 0.8)
    if shape == "cross":
        return np.minimum(np.maximum(across - 0.3, high - 1), np.maximum(high - 0.3, across - 1))
    return abs(np.hypot(x, y) - 0.78) - 0.22


def _distance(x, y, left: float, top: float, right: float, bottom: float) -> np.ndarray:
    """The distance of each point from the stroke between two points."""
    wide, tall = right - left, bottom - top
    along = ((x - left) * wide + (y - top) * tall) / (wide**2 + tall**2)
    along = np.clip(along, 0, 1)
    return np.hypot(x - left - along * wide, y - top - along * tall)
