"""Rotary angles, from the module that knows them, computed once a position."""

import torch
from torch import Tensor, nn

from engine.target.row_mask import RowMask

_BY_LENGTH = ("dynamic", "longrope")  # their frequencies change as the text grows


class RotaryTable:
    """cos and sin by position, as ``rotary_emb`` of the model gives them.

    The first half of sin is negated: with it, turning a head is x * cos + swapped(x) * sin,
    where swapped exchanges the halves.
    """

    def __init__(self, rotary_emb: nn.Module, like: Tensor) -> None:
        self._module = rotary_emb
        self._like = like.new_empty(0)  # says dtype and device
        self._fixed = getattr(rotary_emb, "rope_type", "default") not in _BY_LENGTH
        self._table = (self._like, self._like)  # replaced as a whole: two threads may share it

    def at(self, mask: RowMask) -> tuple[Tensor, Tensor]:
        """cos and sin [R, D] at the rows' positions."""
        if not self._fixed:
            return self._compute(mask.row_positions)
        first, last = mask.span
        cosine, sine = self._table
        if last >= len(cosine):
            cosine, sine = self._table = self._compute(torch.arange(max(2 * last, 256)))
        if mask.consecutive:
            return cosine[first : last + 1], sine[first : last + 1]
        return cosine[mask.row_positions], sine[mask.row_positions]

    def _compute(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        cosine, sine = (part[0] for part in self._module(self._like, positions[None]))
        sine = sine.clone()
        sine[:, : sine.shape[-1] // 2].neg_()
        return cosine, sine
