"""GEAR: all columns of the KV cache are stored in two bits, with outliers and a low-rank correction; the most recent
tokens stay unrounded.

Kang et al., GEAR: An Efficient KV Cache Compression Recipe for Near-Lossless Generative Inference of LLM (2024). Some
numbers are outliers and stay unrounded: for keys the largest and smallest numbers of each channel, for values those of
each token. The rounding error of all other numbers is approximated by a matrix of rank ``RANK``.
"""

import torch

from engine.methods.shared.quantspec import QuantSpec

LOWER = 2  # bits
OUTLIERS = 0.01  # share of the numbers that are kept unrounded at either end
RANK = 4


class Gear(QuantSpec):
    key = "gear"
    claim = "GEAR: near-lossless with four bits, up to 2.38 times the throughput (lossy there)"
    bits = LOWER + 2 * OUTLIERS * 48 + 1  # with the outliers, their places, and the matrices

    def coarse(self, numbers, are_keys):
        along = 2 if are_keys else 3
        count = max(1, int(OUTLIERS * numbers.shape[along])) if numbers.numel() else 0
        if not count:
            return numbers
        high = numbers.topk(count, along).values.amin(along, keepdim=True)
        low = numbers.topk(count, along, largest=False).values.amax(along, keepdim=True)
        inner = self.stepped(numbers.clamp(low, high), are_keys, LOWER)
        rounded = torch.where((numbers >= high) | (numbers <= low), numbers, inner)
        error = numbers - rounded
        directions = torch.linalg.eigh((error.mT @ error).double()).eigenvectors[..., -RANK:]
        directions = directions.to(error.dtype)
        return rounded + error @ directions @ directions.mT
