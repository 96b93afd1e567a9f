"""The columns of one text that a method's own module has read, in plain torch.

Letters in shapes: R rows of a pass, C columns up to its last row, H heads, D head size.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.cache import CAPACITY, KVCache

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, queries [H, R, D], keys and values [Hkv, R, D] of the same rows) -> [H, R, D]"""


class ModuleColumns(KVCache):
    """Keys and values of all layers."""

    @classmethod
    def of(cls, layers: int) -> ModuleColumns:
        return cls.empty(layers, CAPACITY)

    def attention(self, begin: int, rows: int, mask: Tensor | None = None) -> Attend:
        """The attention of a pass whose rows get the columns from ``begin`` on. mask: bool [R, C], the columns that each row
        sees; None: all."""
        self.reserve(begin + rows)
        self.length = begin

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            every = self.layers[layer].update(keys[None], values[None])
            return F.scaled_dot_product_attention(
                queries[None], *every, attn_mask=mask, enable_gqa=True
            )[0]

        return attend

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put keys and values [Hkv, R, D] after the layer's columns -> all of them, [Hkv, C, D] each."""
        self.reserve(self.layers[layer].length + keys.shape[1])
        keys, values = self.layers[layer].update(keys[None], values[None])
        return keys[0], values[0]

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """The layer's columns, [Hkv, C, D] each."""
        kept = self.layers[layer]
        return kept.keys[0, :, : kept.length], kept.values[0, :, : kept.length]


def causal(rows: int, before: int, device: torch.device) -> Tensor | None:
    """bool [R, before + R]: each row sees the columns before, the rows before it and itself; None for a single row."""
    if rows == 1:
        return None
    return torch.ones(rows, before + rows, dtype=torch.bool, device=device).tril(before)
