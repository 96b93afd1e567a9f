"""How the tokens of a model make a picture, as its config says, which is checked here.

A model of pictures has an entry ``draftscope_picture`` in its config. The same numbers go into the
trace, so the page that draws the picture needs no text from the tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

FIELD = "draftscope_picture"
LARGEST = 256  # pixels of a side


@dataclass(frozen=True)
class Picture:
    """width, height: in pixels. patch: the side of a token's patch in pixels. levels: number of grey levels; 0 is
    the paper. first: the token whose pixels are all 0. All other patches follow it: a token's pixels, row by row,
    are the digits of its distance from ``first`` in base ``levels``."""

    width: int
    height: int
    patch: int
    levels: int
    first: int

    @property
    def count(self) -> int:
        """How many tokens are patches."""
        return self.levels ** (self.patch**2)

    @property
    def places(self) -> int:
        """Number of tokens in a picture."""
        return (self.width // self.patch) * (self.height // self.patch)

    def pixels(self, token: int) -> tuple[int, ...]:
        """Grey levels of a patch, row by row. Raises ValueError for a token that is not a patch."""
        rest = token - self.first
        if not 0 <= rest < self.count:
            raise ValueError(f"the token {token} is no patch of a picture")
        found = []
        for _ in range(self.patch**2):
            rest, level = divmod(rest, self.levels)
            found.append(level)
        return tuple(reversed(found))

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


def picture_of(config: object, vocabulary: int) -> Picture | None:
    """The picture that a model's config describes; None if it describes none that can be drawn."""
    given = getattr(config, FIELD, None)
    names = ("width", "height", "patch", "levels", "first")
    if not isinstance(given, Mapping) or any(type(given.get(name)) is not int for name in names):
        return None
    made = Picture(**{name: given[name] for name in names})
    bounded = 1 <= made.patch <= 8 and 2 <= made.levels <= 256 and made.first >= 0
    sides = all(
        1 <= s <= LARGEST and bounded and s % made.patch == 0 for s in (made.width, made.height)
    )
    return made if bounded and sides and made.first + made.count <= vocabulary else None
