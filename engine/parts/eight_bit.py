"""Matrices in 8 bits: half the bytes of bfloat16, for parts that only draft, so that rounding costs acceptance but
never exactness.

The form is that of compressed-tensors (formats int-quantized and float-quantized): beside a tensor NAME of int8 or
float8 stands NAME_scale, one factor for all rows or one for each row. A float8 tensor without NAME_scale is used
unscaled.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = "_scale"
FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)
STORED = ("I8", "F8_E4M3", "F8_E5M2")
"""The names that safetensors files use for int8 and for the float8 types in FLOATS."""
LARGEST = 127
"""The largest int8 number that is written; -128 is not used."""


def unpacked(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without the scales: tensors in 8 bits are multiplied by their scales and become float32, others stay
    unchanged.

    Raises ValueError, whose message is a clause for the end of the caller's sentence, if an int8 tensor has no scale,
    or a scale does not fit its tensor.
    """
    eight = {name for name, tensor in tensors.items() if tensor.dtype in (torch.int8, *FLOATS)}
    scales = {name + SCALE for name in eight}
    return {
        name: _unpacked(name, tensor, tensors.get(name + SCALE)) if name in eight else tensor
        for name, tensor in tensors.items()
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
    shape = (-1, *[1] * (tensor.dim() - 1)) if scale.numel() > 1 else ()
    return tensor.float() * scale.float().reshape(shape)


def packed(tensors: Mapping[str, Tensor], steps: int = LARGEST) -> dict[str, Tensor]:
    """Floating-point matrices as int8 with a scale for each row: the row's largest absolute number divided by
    ``steps``. Other tensors stay unchanged. With few steps, up to 31 for instance, the file compresses better
    (``stored_file``)."""
    result: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dim() != 2 or tensor.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            result[name] = tensor
            continue
        result[name], result[name + SCALE] = _packed(tensor, steps)
    return result


def rounded(matrix: Tensor) -> Tensor:
    """The matrix [R, N], in its own dtype, after rounding to 8 bits."""
    numbers, scale = _packed(matrix)
    return (numbers.float() * scale).to(matrix.dtype)


def _packed(matrix: Tensor, steps: int = LARGEST) -> tuple[Tensor, Tensor]:
    numbers = matrix.float()
    scale = numbers.abs().amax(1, keepdim=True).clamp(min=1e-12) / steps
    return (numbers / scale).round().to(torch.int8), scale
