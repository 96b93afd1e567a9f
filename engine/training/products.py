"""Matrix products in fp16 that also sum in fp16, through MKL.

A processor with AVX512-FP16 and without AMX multiplies fp16 numbers twice as fast as fp32 numbers, but only when the
sums are fp16 too, and torch's own products sum in fp32. The sums of MKL's `cblas_hgemm` over a few hundred terms are
off by 0.3 % (root mean square, normal numbers), about as much as rounding the factors to bf16 costs. `pip install mkl`
brings the library; without it, or on another processor, `pick_precision` takes another number format.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112
SEQUENTIAL = 1
ONE, ZERO = ctypes.c_uint16(0x3C00), ctypes.c_uint16(0)  # halves, as bits


@cache
def library() -> ctypes.CDLL | None:
    """MKL's single library from this environment, one thread per call; None where it is missing."""
    for path in sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*")):
        try:
            found = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
            found.MKL_Set_Threading_Layer(SEQUENTIAL)
            found.cblas_hgemm  # noqa: B018, an attribute that older versions lack
        except (OSError, AttributeError):
            continue
        return found
    return None


def _laid_out(x: Tensor) -> tuple[Tensor, int]:
    """The matrix with contiguous rows or contiguous columns in memory, and which of the two."""
    if x.stride(1) == 1 and x.stride(0) >= x.shape[1]:
        return x, AS_IT_IS
    if x.stride(0) == 1 and x.stride(1) >= x.shape[0]:
        return x, TRANSPOSED
    return x.contiguous(), AS_IT_IS


@torch.library.custom_op("draftscope::half_product", mutates_args=())
def half_product(a: Tensor, b: Tensor) -> Tensor:
    """fp16 a [m, k], b [k, n] -> [m, n], summed in fp16"""
    (m, k), n = a.shape, b.shape[1]
    a, order_a = _laid_out(a)
    b, order_b = _laid_out(b)
    out = a.new_empty(m, n)
    library().cblas_hgemm(
        ROW_MAJOR, order_a, order_b, m, n, k,
        ONE, ctypes.c_void_p(a.data_ptr()), max(a.stride()),
        ctypes.c_void_p(b.data_ptr()), max(b.stride()),
        ZERO, ctypes.c_void_p(out.data_ptr()), n,
    )  # fmt: skip
    return out


@half_product.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty(a.shape[0], b.shape[1])


def _save(ctx, inputs, output) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:
    a, b = ctx.saved_tensors
    return half_product(gradient, b.mT), half_product(a.mT, gradient)


half_product.register_autograd(_backward, setup_context=_save)


def product(a: Tensor, b: Tensor) -> Tensor:
    """a [..., m, k], b [k, n] -> [..., m, n]; fp16 goes through MKL"""
    if a.dtype != torch.float16:
        return a @ b
    return half_product(a.flatten(0, -2), b).unflatten(0, a.shape[:-1])
