"""All columns in two bits, mended by a few outliers and a matrix of low rank; the most recent tokens whole.

Kang et al., GEAR: An Efficient KV Cache Compression Recipe for Near-Lossless Generative Inference of LLM (2024). Beside the
rounded numbers stand the largest and the smallest of each channel of keys and each token of values, and what rounding leaves
is approached by the directions in which it is largest.
"""

import torch

from engine.methods.shared.quantspec import QuantSpec

LOWER = 2  # bits
OUTLIERS = 0.01  # of the numbers, at either end
RANK = 4


class Gear(QuantSpec):
    key = "gear"
    claim = "GEAR: near-lossless with four bits, up to 2.38 times the throughput (lossy there)"
    bits = LOWER + 2 * OUTLIERS * 48 + 1  # outliers and their places; of the matrices, in 16 bits

    def coarse(self, numbers, are_keys):
        along = 2 if are_keys else 3
        count = max(1, int(OUTLIERS * numbers.shape[along])) if numbers.numel() else 0
        if not count:
            return numbers
        high = numbers.topk(count, along).values.amin(along, keepdim=True)
        low = numbers.topk(count, along, largest=False).values.amax(along, keepdim=True)
        inner = self.stepped(numbers.clamp(low, high), are_keys, LOWER)
        made = torch.where((numbers >= high) | (numbers <= low), numbers, inner)
        left = numbers - made
        directions = torch.linalg.eigh((left.mT @ left).double()).eigenvectors[..., -RANK:]
        directions = directions.to(left.dtype)
        return made + left @ directions @ directions.mT
