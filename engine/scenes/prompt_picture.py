"""The picture in a prompt, written as in Markdown: ``what is in the middle? ![](scene:7)``; or the film: ``what moves? ![](film:7)``.

A picture is a scene by its number, or a data address with its bytes; a film is one by its number, or an animation's bytes. No file and no other address is ever opened.
"""

from __future__ import annotations

import re

import numpy as np

from engine.errors import UserError
from engine.scenes import brought
from engine.scenes.film import FRAMES, numbered_film
from engine.scenes.scene import SIDE, numbered

SCENE, FILM = "scene:", "film:"
MOST_NUMBER = 10**9

_PICTURE = re.compile(r"!\[[^\]\n]*\]\(([^()\s]*)\)")


def split(prompt: str) -> tuple[str, str | None]:
    """The words of a prompt, and the address of its picture; None if it has none. Raises UserError for several."""
    found = _PICTURE.findall(prompt)
    if len(found) > 1:
        raise UserError(f"The prompt has {len(found)} pictures; this model sees one.")
    return " ".join(_PICTURE.sub(" ", prompt).split()), found[0] if found else None


def joined(words: str, address: str) -> str:
    """The prompt with its picture's address, the inverse of ``split``."""
    return f"{words} ![]({address})"


def is_numbered(address: str) -> bool:
    """Whether it names a scene or a film by a number."""
    return address.startswith((SCENE, FILM))


def pixels(address: str, side: int = SIDE, frames: int = FRAMES) -> np.ndarray:
    """uint8 [side, side, 3], or a film [frames * side, side, 3]. frames: that a model sees of a film; 1: it sees no films, and of
    an animation the first picture. Raises UserError, one sentence, for an address of no picture, and for a film that is not seen.
    """
    if address.startswith(FILM) and frames == 1:
        raise UserError("This model sees one picture and no films.")
    for scheme, noun, make in ((SCENE, "scene", numbered), (FILM, "film", numbered_film)):
        if address.startswith(scheme):
            number = address.removeprefix(scheme)
            if not re.fullmatch("[0-9]{1,10}", number) or int(number) > MOST_NUMBER:
                raise UserError(f"A {noun} is a number from 0 to {MOST_NUMBER:,}: {scheme}7.")
            drawn = make(int(number))[1]
            if side == SIDE and len(drawn) in (SIDE, frames * SIDE):
                return drawn
            address = brought.png(drawn)
    return brought.seen(brought.bytes_of(address), side, frames)
