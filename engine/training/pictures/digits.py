"""Draws pictures of digits that look handwritten, and codes pictures as tokens.

A digit has a few strokes, which are varied at random, so no two pictures are equal. A picture is coded as the token of
its digit and then one token for each patch of pixels. Every possible patch has its own token, so the coding loses
nothing. The text of a patch's token shows its pixels as shades, so a terminal can show the picture.
"""

from __future__ import annotations

import math

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from engine.model.picture import Picture

SIDE = 16  # pixels along a side of the picture
LEVELS = 4  # levels of grey; 0 is the paper
PICTURE = Picture(width=SIDE, height=SIDE, patch=2, levels=LEVELS, first=0)
SHADES = "·░▒█"
END, ANY = "<|endoftext|>", "<|any|>"
END_TOKEN = PICTURE.count
ANY_TOKEN = PICTURE.count + 1
FIRST_DIGIT = PICTURE.count + 2
VOCABULARY = FIRST_DIGIT + 10


def _arc(x: float, y: float, wide: float, high: float, start: float, end: float, points: int = 9):
    """Points of an arc, [points, 2], on an ellipse around (x, y). start, end: angles as shares of a full turn,
    clockwise from the right."""
    angles = np.linspace(start, end, points) * 2 * math.pi
    return np.stack([x + wide * np.cos(angles), y + high * np.sin(angles)], -1)


def _line(*points: tuple[float, float]):
    return np.array(points, dtype=float)


# The strokes of each digit, as points in a box from -1 to 1, with y downwards.
STROKES: tuple[tuple[np.ndarray, ...], ...] = (
    (_arc(0, 0, 0.6, 0.9, 0, 1, 17),),
    (_line((-0.35, -0.55), (0.1, -0.9), (0.1, 0.9)),),
    (np.concatenate([_arc(0, -0.42, 0.55, 0.48, -0.47, 0.12), _line((-0.55, 0.9), (0.6, 0.9))]),),
    (_arc(-0.05, -0.45, 0.5, 0.45, -0.42, 0.25), _arc(-0.05, 0.45, 0.58, 0.45, -0.25, 0.42)),
    (_line((0.25, 0.9), (0.25, -0.9), (-0.6, 0.3), (0.65, 0.3)),),
    (
        np.concatenate(
            [_line((0.5, -0.9), (-0.45, -0.9), (-0.5, -0.1)), _arc(0, 0.35, 0.55, 0.52, -0.3, 0.4)]
        ),
    ),
    (np.concatenate([_line((0.35, -0.9), (-0.25, -0.35)), _arc(0, 0.4, 0.52, 0.5, 0.5, 1.5, 17)]),),
    (_line((-0.6, -0.9), (0.6, -0.9), (-0.1, 0.9)),),
    (_arc(0, -0.45, 0.42, 0.43, 0, 1, 15), _arc(0, 0.44, 0.54, 0.46, 0, 1, 15)),
    (np.concatenate([_arc(0, -0.4, 0.52, 0.5, 0, 1, 17), _line((0.5, -0.35), (0.2, 0.9))]),),
)


def draw(digits: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Draw a picture of each digit [N]; returns grey levels [N, SIDE, SIDE], from 0 to LEVELS - 1."""
    return np.stack([_picture(int(digit), generator) for digit in digits])


def _picture(digit: int, generator: np.random.Generator) -> np.ndarray:
    turn = generator.normal(0, 0.12)
    slant, wide, high = (
        generator.normal(0.1, 0.16),
        generator.uniform(0.6, 0.95),
        generator.uniform(0.8, 1.0),
    )
    shift = generator.uniform(-0.12, 0.12, 2)
    pen = generator.uniform(0.09, 0.2)
    cos, sin = math.cos(turn), math.sin(turn)
    bend = np.array([[cos, -sin], [sin, cos]]) @ np.array([[wide, -slant * high], [0, high]])
    nearest = np.full((SIDE, SIDE), np.inf)
    for stroke in STROKES[digit]:
        points = (stroke + generator.normal(0, 0.035, stroke.shape)) @ bend.T * 0.78 + shift
        nearest = np.minimum(nearest, _distance(points))
    ink = np.clip((pen - nearest) / 0.125 + 0.5, 0, 1)  # a pixel is 0.125 wide: edges are soft
    return np.floor(ink * (LEVELS - 1) + 0.5).astype(np.int64)


_AXIS = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
_PIXELS = np.stack(np.meshgrid(_AXIS, _AXIS), -1)  # [SIDE, SIDE, 2], x and y of each pixel's middle


def _distance(points: np.ndarray) -> np.ndarray:
    """The distance of each pixel to a line, [SIDE, SIDE]. points: the line, as [P, 2] points that are joined by
    straight segments."""
    start, along = points[:-1], np.diff(points, axis=0)
    offset = _PIXELS[:, :, None] - start
    share = (offset * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-12)
    left = offset - np.clip(share, 0, 1)[..., None] * along
    return np.sqrt((left**2).sum(-1).min(-1))


def tokens_of(pictures: np.ndarray) -> np.ndarray:
    """The tokens of pictures, [N, SIDE, SIDE] -> [N, number of patches], row by row."""
    patch, places = PICTURE.patch, SIDE // PICTURE.patch
    cut = pictures.reshape(-1, places, patch, places, patch).swapaxes(2, 3)
    weights = LEVELS ** np.arange(patch * patch)[::-1]
    return PICTURE.first + cut.reshape(len(pictures), places * places, -1) @ weights


def picture_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of the family. Its vocabulary has the patches and the ten digits; every other word becomes a token
    that means "any digit"."""
    words = ["".join(SHADES[level] for level in PICTURE.pixels(n)) for n in range(PICTURE.count)]
    words += [END, ANY, *"0123456789"]
    model = Tokenizer(WordLevel({word: token for token, word in enumerate(words)}, unk_token=ANY))
    model.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=model, eos_token=END, unk_token=ANY)
