"""Reads and checks the entry of a model's config that describes how its tokens make a picture.

A model of pictures has an entry ``draftscope_picture`` in its config. The same numbers go into the trace, so the page
that draws the picture needs no text from the tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

FIELD = "draftscope_picture"
LARGEST = 256  # pixels of a side


@dataclass(frozen=True)
class Picture:
    """How tokens make a picture. width, height: the picture's, in pixels. patch: the side of a token's patch, in
    pixels. levels: number of grey levels; level 0 is the paper. first: the token whose pixels are all 0. The tokens of
    all other patches follow it: the pixels of a token, row by row, are the digits of its distance from ``first`` in
    base ``levels``."""

    width: int
    height: int
    patch: int
    levels: int
    first: int

    @property
    def count(self) -> int:
        """The number of tokens that are patches."""
        return self.levels ** (self.patch**2)

    @property
    def places(self) -> int:
        """The number of patches, and so of tokens, in a picture."""
        return (self.width // self.patch) * (self.height // self.patch)

    def pixels(self, token: int) -> tuple[int, ...]:
        """The grey levels of a token's patch, row by row. Raises ValueError for a token that is not a patch."""
        rest = token - self.first
        if not 0 <= rest < self.count:
            raise ValueError(f"the token {token} is no patch of a picture")
        levels = []
        for _ in range(self.patch**2):
            rest, level = divmod(rest, self.levels)
            levels.append(level)
        return tuple(reversed(levels))

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


def picture_of(config: object, vocabulary: int) -> Picture | None:
    """The picture that a model's config describes; None if it describes no picture, or a picture that cannot be drawn.

    vocabulary: the number of the model's tokens."""
    entry = getattr(config, FIELD, None)
    names = ("width", "height", "patch", "levels", "first")
    if not isinstance(entry, Mapping) or any(type(entry.get(name)) is not int for name in names):
        return None
    picture = Picture(**{name: entry[name] for name in names})
    bounded = 1 <= picture.patch <= 8 and 2 <= picture.levels <= 256 and picture.first >= 0
    sides = all(
        1 <= s <= LARGEST and bounded and s % picture.patch == 0
        for s in (picture.width, picture.height)
    )
    return picture if bounded and sides and picture.first + picture.count <= vocabulary else None
