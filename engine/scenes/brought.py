"""Pictures and short films that people supply: decoded within limits, and scaled to the size that a model sees."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from engine.errors import UserError
from engine.scenes.film import FRAMES
from engine.scenes.scene import SIDE

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
MOST_BYTES = 6_000_000
MOST_PIXELS = 16_000_000
TOO_MANY = f"at most {MOST_PIXELS // 1_000_000} million pixels are decoded"
NARROW = 20  # the longer side must be less than 20 times the shorter side
PAPER = (
    238,
    238,
    238,
)  # the colour behind transparent pixels and beside a picture that is not square
SMALL = 12_000  # an address of no more letters is not made smaller
MOST_FRAMES = 2000  # the most frames of an animation
PAUSE = 350  # milliseconds for which each frame of a film is shown

_ADDRESS = re.compile(r"data:image/(?:png|jpeg|webp|gif|bmp);base64,([A-Za-z0-9+/=]*)")


def seen(data: bytes, side: int, frames: int = 1) -> np.ndarray:
    """The picture as a model sees it: uint8 [side, side, 3], turned upright by its EXIF entry, and padded if it is not
    square. Of an animation, ``frames`` frames at even distances, uint8 [frames * side, side, 3], one below the other.

    Raises UserError, one sentence, for bytes that are no picture, and for a picture that is too large, too narrow or
    too long.
    """
    if len(data) > MOST_BYTES:
        raise UserError(f"The picture is larger than {MOST_BYTES // 1_000_000} MB.")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _check_size(*image.size)
            image.draft("RGB", (2 * side, 2 * side))  # a JPEG is decoded at a fraction of its size
            return np.concatenate([_small(frame, side) for frame in _frames(image, frames)])
    except UserError:
        raise
    except Image.DecompressionBombError:
        raise UserError(f"The picture is too large: {TOO_MANY}.") from None
    except Exception as error:  # Pillow's decoders raise many kinds for one cause
        raise UserError(f"This is no picture that can be read ({', '.join(FORMATS)}).") from error


def _frames(image: Image.Image, count: int) -> Iterator[Image.Image]:
    """Yields ``count`` frames, each valid until the next is yielded; only the first if the picture has no others."""
    total = getattr(image, "n_frames", 1)
    if total == 1 or count == 1:
        yield image
        return
    if total > MOST_FRAMES:
        raise UserError(f"The animation has {total:,} pictures; at most {MOST_FRAMES:,} are read.")
    if total * image.width * image.height > MOST_PIXELS * count:
        raise UserError(
            f"The animation is too large: {total:,} pictures of {image.width:,} × {image.height:,} pixels."
        )
    for turn in range(count):
        image.seek(round(turn * (total - 1) / (count - 1)))
        yield image


def _small(frame: Image.Image, side: int) -> np.ndarray:
    """One frame on paper, uint8 [side, side, 3]."""
    upright = ImageOps.exif_transpose(frame).convert("RGBA")
    paper = Image.new("RGBA", upright.size, PAPER)
    whole = Image.alpha_composite(paper, upright).convert("RGB")
    return np.asarray(ImageOps.pad(whole, (side, side), color=PAPER))


def _check_size(width: int, height: int) -> None:
    """Raises UserError for a picture that is too large or too narrow; called before anything is decoded."""
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
    """The bytes in a data address. Raises UserError if the address holds no picture."""
    match = _ADDRESS.fullmatch(address)
    try:
        return base64.b64decode(match[1], validate=True) if match else _refuse()
    except binascii.Error:
        return _refuse()


def _refuse() -> bytes:
    raise UserError("The picture's address holds no picture: data:image/png;base64, and its bytes.")


def png(pixels: np.ndarray) -> str:
    """A lossless data address. pixels: uint8 [height, width, 3], or a film [F * width, width, 3], which becomes an
    animation."""
    return _address(pixels, "PNG", optimize=True)


def small(data: bytes, side: int = SIDE, frames: int = FRAMES) -> str:
    """A data address of about a thousand letters per frame: the picture as ``seen`` returns it, compressed with small
    losses."""
    return _address(seen(data, side, frames), "WEBP", quality=70, method=6)


def _address(pixels: np.ndarray, form: str, **how) -> str:
    """The data address of a picture, or of an animation."""
    stream = io.BytesIO()
    first, *others = (
        Image.fromarray(frame) for frame in pixels.reshape(-1, pixels.shape[1], *pixels.shape[1:])
    )
    if others:
        how |= {"save_all": True, "append_images": others, "duration": PAUSE, "loop": 0}
    first.save(stream, form, **how)
    return f"data:image/{form.lower()};base64,{base64.b64encode(stream.getvalue()).decode()}"
