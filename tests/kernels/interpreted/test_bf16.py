"""bf16 numerics of the kernels that multiply matrices, against float64 and a bound.

Triton's interpreter keeps bf16 as bits, multiplies those bits in a dot and truncates where a GPU
rounds. The tests mend both, so that the kernel runs as on a GPU: bf16 operands, fp32 sums, and
rounding to nearest.
"""

import numpy as np
import pytest
import torch
from triton import language as tl
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from engine.fast.kernels.attention_plan import Plan
from engine.fast.kernels.bits import AncestorBits
from engine.fast.kernels.tree_attention import tree_attention_reference
from tests.kernels.cases import attention_inputs
from tests.kernels.device import INTERPRETED, tree_attention_triton

ROUNDED = 2**-8  # the largest relative error of rounding to bf16
FP32 = 1e-5  # the error that fp32 sums of this length add


def _widened(handle):
    if handle.dtype.scalar != tl.bfloat16:
        return handle
    bits = handle.data.astype(np.uint32) << 16
    return TensorHandle(bits.view(np.float32), tl.float32)


@pytest.fixture
def true_bf16(monkeypatch):
    if not INTERPRETED:
        return
    dot, cast = InterpreterBuilder.create_dot, InterpreterBuilder.cast_impl

    def mended_dot(self, a, b, d, *rest):
        return dot(self, _widened(a), _widened(b), d, *rest)

    def mended_cast(self, src, dst_type):
        if (src.dtype.scalar, dst_type.scalar) != (tl.float32, tl.bfloat16):
            return cast(self, src, dst_type)
        rounded = torch.from_numpy(np.ascontiguousarray(src.data)).to(torch.bfloat16)
        return TensorHandle(rounded.view(torch.int16).numpy().view(np.uint16), tl.bfloat16)

    monkeypatch.setattr(InterpreterBuilder, "create_dot", mended_dot)
    monkeypatch.setattr(InterpreterBuilder, "cast_impl", mended_cast)


def bf16_case():
    torch.manual_seed(0)
    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    mask = AncestorBits.of(seen, torch.arange(5), 150)
    return attention_inputs(mask, 4, 2, 64, torch.bfloat16), mask


def excess(inputs, mask, cut) -> float:
    """Return the largest error over its bound.

    Scores and sums are fp32. The weights w are rounded before they are multiplied by v, and the output is rounded
    again. So it is off by at most ROUNDED (sum of w |v| + its own size).
    """
    found = tree_attention_triton(*inputs, mask, cut=cut).double()
    exact = [tensor.double() for tensor in inputs]
    expected = tree_attention_reference(*exact, mask)
    around = tree_attention_reference(exact[0], exact[1], exact[2].abs(), mask)
    bound = ROUNDED * (around + expected.abs()) + FP32
    return float(((found - expected).abs() / bound).max())


@pytest.mark.parametrize("splits", [1, 3])
def test_attention_stays_within_its_rounding(splits, true_bf16):
    assert excess(*bf16_case(), Plan(32, 16, splits, 4, 2)) <= 1


@pytest.mark.skipif(not INTERPRETED, reason="a GPU multiplies bf16")
def test_a_broken_dot_would_be_seen():
    """The unmended interpreter multiplies bits as if they were numbers."""
    assert not excess(*bf16_case(), Plan(32, 16, 1, 4, 2)) <= 1
