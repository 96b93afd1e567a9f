"""The picture in a prompt, written as in Markdown: ``what is in the middle? ![](scene:7)``; or the film: ``what moves?
![](film:7)``.

A scene or a film is named by its number; other pictures and animations by a data address with their bytes. No file and
no other address is ever opened.
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
    """The words of a prompt, and the address of its picture or None. Raises UserError for several pictures."""
    addresses = _PICTURE.findall(prompt)
    if len(addresses) > 1:
        raise UserError(f"The prompt has {len(addresses)} pictures; this model sees one.")
    return " ".join(_PICTURE.sub(" ", prompt).split()), addresses[0] if addresses else None


def joined(words: str, address: str) -> str:
    """The prompt with the address of its picture; the inverse of ``split``."""
    return f"{words} ![]({address})"


def is_numbered(address: str) -> bool:
    """Whether the address names a scene or a film by its number."""
    return address.startswith((SCENE, FILM))


def pixels(address: str, side: int = SIDE, frames: int = FRAMES) -> np.ndarray:
    """The picture at an address, uint8 [side, side, 3], or the film, uint8 [frames * side, side, 3].

    frames: the number of frames that the model sees of a film; with 1 it sees no films, and the first picture of an
    animation. Raises UserError, one sentence, for an address that holds no picture, and for a film that the model does
    not see.
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
