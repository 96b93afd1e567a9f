"""Pictures that people bring: decoded within limits, and made as small as a model sees them."""

from __future__ import annotations

import base64
import binascii
import io
import re
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from engine.errors import UserError
from engine.scenes.scene import SIDE

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
MOST_BYTES = 6_000_000
MOST_PIXELS = 16_000_000
TOO_MANY = f"at most {MOST_PIXELS // 1_000_000} million pixels are decoded"
NARROW = 20  # the longer side must be less than so many times the shorter one
PAPER = (238, 238, 238)  # behind what is transparent, and beside a picture that is no square
SMALL = 3000  # letters of an address that is not made smaller

_ADDRESS = re.compile(r"data:image/(?:png|jpeg|webp|gif|bmp);base64,([A-Za-z0-9+/=]*)")


def seen(data: bytes, side: int) -> np.ndarray:
    """uint8 [side, side, 3]: the whole picture, upright as its EXIF entry says, with paper beside it where it is no square;
    of an animation the first picture.

    Raises UserError, one sentence, for bytes that are no picture, and for one that is too large or too narrow.
    """
    if len(data) > MOST_BYTES:
        raise UserError(f"The picture is larger than {MOST_BYTES // 1_000_000} MB.")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _check_size(*image.size)
            image.draft("RGB", (2 * side, 2 * side))  # a JPEG is decoded at a fraction of its size
            upright = ImageOps.exif_transpose(image).convert("RGBA")
    except UserError:
        raise
    except Image.DecompressionBombError:
        raise UserError(f"The picture is too large: {TOO_MANY}.") from None
    except Exception as error:  # Pillow's decoders raise many kinds for one cause
        raise UserError(f"This is no picture that can be read ({', '.join(FORMATS)}).") from error
    paper = Image.new("RGBA", upright.size, PAPER)
    whole = Image.alpha_composite(paper, upright).convert("RGB")
    return np.asarray(ImageOps.pad(whole, (side, side), color=PAPER))


def _check_size(width: int, height: int) -> None:
    """Before anything is decoded."""
    if width * height > MOST_PIXELS:
        raise UserError(f"The picture has {width:,} × {height:,} pixels; {TOO_MANY}.")
    if max(width, height) >= NARROW * min(width, height):
        raise UserError(f"The picture is too narrow: {width:,} × {height:,} pixels.")


def read(file: Path) -> bytes:
    """The bytes of a file, at most one more than a picture may have. Raises UserError if the file cannot be read."""
    try:
        with file.open("rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{file.name} cannot be read: {error.strerror}.") from None


def bytes_of(address: str) -> bytes:
    """The bytes in a data address. Raises UserError where it is none of a picture."""
    found = _ADDRESS.fullmatch(address)
    try:
        return base64.b64decode(found[1], validate=True) if found else _refuse()
    except binascii.Error:
        return _refuse()


def _refuse() -> bytes:
    raise UserError("The picture's address holds no picture: data:image/png;base64, and its bytes.")


def png(pixels: np.ndarray) -> str:
    """A data address with every pixel as it is. pixels: uint8 [height, width, 3]."""
    return _address(pixels, "PNG", optimize=True)


def small(data: bytes, side: int = SIDE) -> str:
    """A data address of about a thousand letters: what ``seen`` makes of these bytes, with small losses."""
    return _address(seen(data, side), "WEBP", quality=70, method=6)


def _address(pixels: np.ndarray, form: str, **how) -> str:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form, **how)
    return f"data:image/{form.lower()};base64,{base64.b64encode(stream.getvalue()).decode()}"
