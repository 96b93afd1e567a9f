"""The KV cache of one text for the module of a method, in plain torch.

Letters in shapes: R rows of a pass (one row per token), C columns of the cache up to the last of these rows, H query
heads, Hkv key/value heads, D head size.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.cache import CAPACITY, KVCache

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Attention as a function: (index of the layer, queries [H, R, D], keys and values [Hkv, R, D] of the same rows) -> [H,
R, D]."""


class ModuleColumns(KVCache):
    """The cached keys and values of all layers of a module, with an attention function for the module's passes."""

    @classmethod
    def of(cls, layers: int) -> ModuleColumns:
        return cls.empty(layers, CAPACITY)

    def attention(self, begin: int, rows: int, mask: Tensor | None = None) -> Attend:
        """Return the attention function of a pass whose ``rows`` rows write their keys and values to the columns from
        ``begin`` on. mask: bool [R, C], True where a row attends to a column; None: every row attends to all C
        columns."""
        self.reserve(begin + rows)
        self.length = begin

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            columns = self.layers[layer].update(keys[None], values[None])
            return F.scaled_dot_product_attention(
                queries[None], *columns, attn_mask=mask, enable_gqa=True
            )[0]

        return attend

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values [Hkv, R, D] to the columns of the layer. Returns all keys and all values of the layer,
        each [Hkv, C, D]."""
        self.reserve(self.layers[layer].length + keys.shape[1])
        keys, values = self.layers[layer].update(keys[None], values[None])
        return keys[0], values[0]

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return all keys and all values of the layer, each [Hkv, C, D]."""
        columns = self.layers[layer]
        return columns.keys[0, :, : columns.length], columns.values[0, :, : columns.length]


def causal(rows: int, before: int, device: torch.device) -> Tensor | None:
    """Return a causal mask, bool [R, before + R]: each row attends to the ``before`` earlier columns, to the rows
    before it and to itself. Returns None for a single row, which attends to everything."""
    if rows == 1:
        return None
    return torch.ones(rows, before + rows, dtype=torch.bool, device=device).tril(before)
