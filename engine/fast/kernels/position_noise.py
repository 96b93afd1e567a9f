"""Computes the noise for the positions of a text on the device that draws tokens with this noise.

The noise is that of ``engine.core.sampling.position_noise``: each word of Philox4x64-10 gives a uniform number u
between 0 and 1, and the noise is -log(u), computed in fp64 and rounded to fp32. A number can differ between two devices
only in its last bit, and only if the devices round the logarithm differently and this difference decides the rounding
to fp32.

Bytes moved: for each position, 4 V are written, where V is the size of the vocabulary. Integer operations: about 40 per
number.
"""

import torch
from torch import Tensor

from engine.core.sampling import noise_key, position_noise
from engine.core.transfer import to_device
from engine.fast.kernels.lang import runs_on, tl, triton


def noise_rows(seed: int, first: int, count: int, vocabulary: int, device: torch.device) -> Tensor:
    """Exponential(1) noise, fp32 [count, V], for ``count`` positions of the text from ``first`` on, on the device."""
    if device.type == "cuda" and runs_on(device):
        return noise_rows_triton(seed, first, count, vocabulary, device)
    return to_device(noise_rows_reference(seed, first, count, vocabulary), device)


def noise_rows_reference(seed: int, first: int, count: int, vocabulary: int) -> Tensor:
    """Define the result of ``noise_rows``, on the CPU."""
    rows = [position_noise(seed, first + row, vocabulary) for row in range(count)]
    return torch.stack(rows) if rows else torch.empty(0, vocabulary)


def noise_rows_triton(
    seed: int, first: int, count: int, vocabulary: int, device: torch.device, block: int = 256
) -> Tensor:
    """Do the work of ``noise_rows`` in the Triton kernel, without waiting for the device. A program computes four times
    ``block`` numbers of a row."""
    out = torch.empty(count, vocabulary, dtype=torch.float32, device=device)
    if count:
        low, high = (word - (1 << 64) if word >> 63 else word for word in noise_key(seed))
        _noise_kernel[(count, triton.cdiv(vocabulary, 4 * block))](
            out, low, high, first, vocabulary, BLOCK=block, num_warps=4
        )
    return out


@triton.jit
def _exponential(word):
    uniform = ((word >> 12).to(tl.float64) + 0.5) * 2.220446049250313e-16
    return (-tl.log(uniform)).to(tl.float32)


@triton.jit(do_not_specialize=["low", "high", "first", "vocabulary"])
def _noise_kernel(out, low, high, first, vocabulary, BLOCK: tl.constexpr):
    """One program per row and block. The first counter is 1, because NumPy increments its counter before it draws the
    first four words."""
    row = tl.program_id(0)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    zero = group.to(tl.uint64) * 0
    position = zero + (first + row).to(tl.uint64)
    words = tl.philox_impl(
        group.to(tl.uint64) + 1, position, zero, zero,
        zero + low.to(tl.uint64), zero + high.to(tl.uint64),
    )  # fmt: skip
    place = out + row.to(tl.int64) * vocabulary
    for turn in tl.static_range(4):
        column = 4 * group + turn
        tl.store(place + column, _exponential(words[turn]), mask=column < vocabulary)
