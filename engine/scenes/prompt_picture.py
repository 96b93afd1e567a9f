"""The picture in a prompt, written as in Markdown: ``what is in the middle? ![](scene:7)``.

A picture is a scene by its number, or a data address with its bytes. No file and no other address is ever opened.
"""

from __future__ import annotations

import re

import numpy as np

from engine.errors import UserError
from engine.scenes import brought
from engine.scenes.scene import SIDE, numbered

SCENE = "scene:"
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


def pixels(address: str, side: int = SIDE) -> np.ndarray:
    """uint8 [side, side, 3]. Raises UserError, one sentence, for an address of no picture."""
    if address.startswith(SCENE):
        number = address.removeprefix(SCENE)
        if not re.fullmatch("[0-9]{1,10}", number) or int(number) > MOST_NUMBER:
            raise UserError(f"A scene is a number from 0 to {MOST_NUMBER:,}: {SCENE}7.")
        picture = numbered(int(number))[1]
        if side == SIDE:
            return picture
        return brought.seen(brought.bytes_of(brought.png(picture)), side)
    return brought.seen(brought.bytes_of(address), side)
