"""All columns, but only the upper four of their eight bits; the most recent tokens whole.

Tiwari et al., QuantSpec: Self-Speculative Decoding with Hierarchical Quantized KV Cache (ICML 2025). There the target reads all
eight bits, and the text is exact for that cache; here the target reads its own numbers, so the text is its own. Keys are
rounded along each channel in groups of tokens, values along each token.
"""

import torch
from torch import Tensor

from engine.methods.shared.selector import Selector

GROUP = 128  # tokens
UPPER = 4  # bits


class QuantSpec(Selector):
    key = "quantspec"
    bits: float = UPPER  # of a rounded number
    claim = "QuantSpec: more than 0.90 of the drafts kept, up to 2.5 times as fast, 1.3 times less memory"

    def __init__(self, budget, sinks):
        super().__init__(budget, sinks)
        self._group = max(2, min(GROUP, budget // 2))
        self._rounded = -1  # columns that are rounded
        self._bits = 32  # of the target's own numbers

    def _whole_from(self, length: int) -> int:
        """From one to two groups stay whole."""
        return max(0, length // self._group - 1) * self._group

    def changes(self, past):
        return self._whole_from(past.session.length) != self._rounded

    def chosen(self, layer, keys, values):
        self._rounded = count = self._whole_from(keys.shape[2])
        self._bits = 8 * keys.element_size()
        coarse = self.coarse(keys[:, :, :count], True), self.coarse(values[:, :, :count], False)
        whole = keys[:, :, count:], values[:, :, count:]
        return tuple(torch.cat(parts, 2) for parts in zip(coarse, whole, strict=True))

    def coarse(self, numbers: Tensor, are_keys: bool) -> Tensor:
        """Keys or values [1, Hkv, T, D], of whole groups, as their upper bits say."""
        return self.stepped(numbers, are_keys, UPPER)

    def stepped(self, numbers: Tensor, are_keys: bool, bits: int) -> Tensor:
        """Keys along each channel in groups of tokens, values along each token, in 2^bits steps from lowest to highest."""
        if not are_keys:
            return rounded(numbers, 3, bits)
        grouped = numbers.unflatten(2, (numbers.shape[2] // self._group, self._group))
        return rounded(grouped, 3, bits).flatten(2, 3)

    def share(self, length):
        whole = length - self._rounded
        return (whole + self._rounded * self.bits / self._bits) / length


def rounded(numbers: Tensor, along: int, bits: int) -> Tensor:
    """The numbers rounded to 2^bits steps from the lowest to the highest along one axis."""
    low, high = numbers.amin(along, keepdim=True), numbers.amax(along, keepdim=True)
    step = ((high - low) / (2**bits - 1)).clamp(min=torch.finfo(numbers.dtype).tiny)
    return ((numbers - low) / step).round() * step + low
