"""The KV cache of one text for a method's own module, in plain torch.

Letters in shapes: R rows of a pass, C columns up to its last row, H heads, D head size.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.cache import CAPACITY, KVCache

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Attention of a layer: (layer, queries [H, R, D], keys and values [Hkv, R, D] of the same rows) -> [H, R, D]."""


class ModuleColumns(KVCache):
    """The keys and values of all layers of a module, with an attention function for its passes."""

    @classmethod
    def of(cls, layers: int) -> ModuleColumns:
        return cls.empty(layers, CAPACITY)

    def attention(self, begin: int, rows: int, mask: Tensor | None = None) -> Attend:
        """The attention function of a pass that writes its rows' keys and values to the columns from ``begin`` on.
        mask: bool [R, C], True where a row sees a column; None: every row sees all C columns."""
        self.reserve(begin + rows)
        self.length = begin

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            columns = self.layers[layer].update(keys[None], values[None])
            return F.scaled_dot_product_attention(
                queries[None], *columns, attn_mask=mask, enable_gqa=True
            )[0]

        return attend

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values [Hkv, R, D] to the layer's columns; returns all keys and all values of the layer, each
        [Hkv, C, D]."""
        self.reserve(self.layers[layer].length + keys.shape[1])
        keys, values = self.layers[layer].update(keys[None], values[None])
        return keys[0], values[0]

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """All keys and all values of the layer, each [Hkv, C, D]."""
        columns = self.layers[layer]
        return columns.keys[0, :, : columns.length], columns.values[0, :, : columns.length]


def causal(rows: int, before: int, device: torch.device) -> Tensor | None:
    """A causal mask, bool [R, before + R]: each row sees the ``before`` earlier columns, the rows before it and itself.
    None for a single row, which sees everything."""
    if rows == 1:
        return None
    return torch.ones(rows, before + rows, dtype=torch.bool, device=device).tril(before)
