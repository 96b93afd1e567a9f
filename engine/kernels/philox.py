"""Philox4x32-10 (Salmon et al. 2011) in torch, number for number as Triton's tl.rand draws it.

A reference only: 64-bit integers on any device, no state.
"""

import torch
from torch import Tensor

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF


def uniform(seed: int, offsets: Tensor) -> Tensor:
    """fp32 in [0, 1) for each offset (below 2^32), as tl.rand(seed, offset)."""
    signed = _first_word(seed, offsets)
    signed = torch.where(signed >= 1 << 31, signed - (1 << 32), signed)
    folded = torch.where(signed < 0, -signed - 1, signed)
    return folded.to(torch.float32) * torch.tensor(4.6566127342e-10, dtype=torch.float32)


def exponential(seed: int, rows: int, vocabulary: int, device=None) -> Tensor:
    """Exp(1) noise fp32 [rows, vocabulary]; row r, column v from offset r * vocabulary + v."""
    offsets = torch.arange(rows * vocabulary, device=device)
    return (-torch.log(1 - uniform(seed, offsets))).clamp_(min=1e-20).view(rows, vocabulary)


def _first_word(seed: int, offsets: Tensor) -> Tensor:
    counter = [offsets.long() & _LOW] + [torch.zeros_like(offsets, dtype=torch.int64)] * 3
    key = [seed & _LOW, (seed >> 32) & _LOW]
    for _ in range(10):
        a, b = (_product(m, c) for m, c in zip(_MULTIPLIERS, (counter[0], counter[2]), strict=True))
        counter = [b[0] ^ counter[1] ^ key[0], b[1], a[0] ^ counter[3] ^ key[1], a[1]]
        key = [(k + w) & _LOW for k, w in zip(key, _WEYL, strict=True)]
    return counter[0]


def _product(multiplier: int, word: Tensor) -> tuple[Tensor, Tensor]:
    """High and low 32 bits of the product, computed without exceeding 63 bits."""
    low = (word & 0xFFFF) * multiplier
    high = (word >> 16) * multiplier + (low >> 16)
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)
