"""A file of weights, as safetensors, plain or compressed by gzip: its table of contents and its tensors."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, load_file
from torch import Tensor

PACKED = ".gz"
MOST_HEADER = 64 << 20  # bytes
WIDEST = 8  # bytes of a number


def weights_at(folder: Path, name: str) -> Path | None:
    """The file of this name in a folder, or the compressed one; None if there is neither."""
    files = (folder / name, folder / (name + PACKED))
    return next((file for file in files if file.exists()), None)


def weights_in(folder: str | Path) -> list[Path]:
    """All files of weights in a folder, by their names."""
    return sorted(file for end in ("", PACKED) for file in Path(folder).glob(f"*.safetensors{end}"))


def entries(file: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """Name -> shape and dtype of the tensors in a file; none of them is read. Raises OSError or SafetensorError if it is
    missing or damaged."""
    if file.suffix == PACKED:
        return _packed_entries(file)
    with safe_open(file, "pt") as stream:
        slices = [(key, stream.get_slice(key)) for key in stream.keys()]  # noqa: SIM118  (no mapping)
        return {key: (tuple(each.get_shape()), each.get_dtype()) for key, each in slices}


def tensors_in(file: Path) -> dict[str, Tensor]:
    """All tensors by name, as they are stored. Of a compressed file no more is unpacked than its entries need. Raises OSError
    or SafetensorError if it is missing or damaged."""
    if file.suffix != PACKED:
        return load_file(file)
    numbers = sum(math.prod(shape) for shape, _ in entries(file).values())
    most = 8 + MOST_HEADER + WIDEST * numbers
    try:
        with gzip.open(file) as stream:
            return load(stream.read(most))
    except (EOFError, zlib.error) as error:
        raise SafetensorError(f"{file.name} is damaged") from error


def compress(file: Path) -> tuple[int, int]:
    """Put a compressed file in the place of this one -> bytes before and after."""
    data = file.read_bytes()
    packed, beside = file.with_name(file.name + PACKED), file.with_name(f".{file.name}.new")
    beside.write_bytes(gzip.compress(data, 9, mtime=0))
    beside.replace(packed)
    file.unlink()
    return len(data), packed.stat().st_size


def _packed_entries(file: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    try:
        with gzip.open(file) as stream:
            size = int.from_bytes(stream.read(8), "little")
            if size > MOST_HEADER:
                raise ValueError
            told = json.loads(stream.read(size))
        told.pop("__metadata__", None)
        return {name: (_shape(each["shape"]), str(each["dtype"])) for name, each in told.items()}
    except (EOFError, zlib.error, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise SafetensorError(f"{file.name} is damaged") from None


def _shape(given: Sequence[int]) -> tuple[int, ...]:
    if not all(type(size) is int and size >= 0 for size in given):
        raise ValueError
    return tuple(given)
