"""A safetensors file of weights, plain or compressed by gzip: its table of contents and its tensors."""

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
    """The file of this name in a folder, or else its compressed form; None if there is neither."""
    files = (folder / name, folder / (name + PACKED))
    return next((file for file in files if file.exists()), None)


def weights_in(folder: str | Path) -> list[Path]:
    """All weight files in a folder, sorted by name."""
    return sorted(file for end in ("", PACKED) for file in Path(folder).glob(f"*.safetensors{end}"))


def entries(file: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """Name -> shape and dtype of the tensors in a file; no tensor is read. Raises OSError or SafetensorError if the
    file is missing or damaged."""
    if file.suffix == PACKED:
        return _packed_entries(file)
    with safe_open(file, "pt") as stream:
        slices = [(key, stream.get_slice(key)) for key in stream.keys()]  # noqa: SIM118  (no mapping)
        return {key: (tuple(tensor.get_shape()), tensor.get_dtype()) for key, tensor in slices}


def tensors_in(file: Path) -> dict[str, Tensor]:
    """All tensors by name, in their stored dtypes. A compressed file is unpacked no further than its entries need.
    Raises OSError or SafetensorError if the file is missing or damaged."""
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
    """Replace a file by its compressed form. Returns the bytes before and after."""
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
            header = json.loads(stream.read(size))
        header.pop("__metadata__", None)
        return {
            name: (_shape(entry["shape"]), str(entry["dtype"])) for name, entry in header.items()
        }
    except (EOFError, zlib.error, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise SafetensorError(f"{file.name} is damaged") from None


def _shape(given: Sequence[int]) -> tuple[int, ...]:
    if not all(type(size) is int and size >= 0 for size in given):
        raise ValueError
    return tuple(given)
