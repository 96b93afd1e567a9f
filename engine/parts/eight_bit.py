"""Matrices in 8 bits: half the bytes of bfloat16, for parts that only draft, so that rounding costs acceptance but never
exactness.

The form is that of compressed-tensors (formats int-quantized and float-quantized): beside a tensor NAME of int8 or
float8 stands NAME_scale, one factor for all rows or one for each row. Without NAME_scale a float8 tensor is its own
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = "_scale"
FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)
STORED = ("I8", "F8_E4M3", "F8_E5M2")
"""The same types and int8, as safetensors names them."""
LARGEST = 127
"""Of the int8 numbers that are written; -128 is not used."""


def unpacked(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without their scales: those in 8 bits in float32, the others as they are. Raises ValueError, whose
    message ends a sentence, where int8 has no scale, or a scale does not fit its tensor."""
    eight = {name for name, each in tensors.items() if each.dtype in (torch.int8, *FLOATS)}
    scales = {name + SCALE for name in eight}
    return {
        name: _unpacked(name, each, tensors.get(name + SCALE)) if name in eight else each
        for name, each in tensors.items()
        if name not in scales
    }


def _unpacked(name: str, tensor: Tensor, scale: Tensor | None) -> Tensor:
    if scale is None:
        if tensor.dtype == torch.int8:
            raise ValueError(f"{name} is int8 and has no {name}{SCALE}")
        return tensor.float()
    rows = len(tensor) if tensor.dim() else 1
    if not scale.is_floating_point() or scale.numel() not in (1, rows):
        raise ValueError(f"{name}{SCALE} is no factor for all rows of {name}, nor one for each")
    each = (-1, *[1] * (tensor.dim() - 1)) if scale.numel() > 1 else ()
    return tensor.float() * scale.float().reshape(each)


def packed(tensors: Mapping[str, Tensor], steps: int = LARGEST) -> dict[str, Tensor]:
    """Floating-point matrices as int8 with a factor for each row, the largest number of the row divided by ``steps``; the
    other tensors as they are. Whole numbers up to 31 take less room where the file is compressed (``stored_file``)."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dim() != 2 or tensor.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            found[name] = tensor
            continue
        found[name], found[name + SCALE] = _packed(tensor, steps)
    return found


def rounded(matrix: Tensor) -> Tensor:
    """The matrix [R, N] as its file in 8 bits would give it back, in its own dtype."""
    numbers, scale = _packed(matrix)
    return (numbers.float() * scale).to(matrix.dtype)


def _packed(matrix: Tensor, steps: int = LARGEST) -> tuple[Tensor, Tensor]:
    numbers = matrix.float()
    scale = numbers.abs().amax(1, keepdim=True).clamp(min=1e-12) / steps
    return (numbers / scale).round().to(torch.int8), scale
