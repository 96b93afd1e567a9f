"""KV cache: committed columns first, the rows of the running step behind them.

The buffers keep their place. A step writes its rows behind the committed columns; committing
moves the kept ones down and lets the rest be overwritten. Nothing of the prefix is copied.
"""

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from engine import gpu


class KVLayer(CacheLayerMixin):
    """One layer's keys and values, [1, Hkv, capacity, D] each.

    ``length`` columns are in use; the owner (KVCache) sets it.
    """

    is_sliding = False  # windows are applied by the mask, for a tree may reach back past them

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        batch, heads, _, width = key_states.shape
        self.keys = key_states.new_empty(batch, heads, self.capacity, width)
        self.values = value_states.new_empty(batch, heads, self.capacity, value_states.shape[-1])
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        """Append rows [1, Hkv, R, D]; returns views of all columns in use."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[-2]
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_seq_length(self) -> int:
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_max_length(self) -> int:
        return self.capacity

    def reserve(self, capacity: int) -> None:
        """Grow the buffers; the owner doubles, so the copies stay linear in the length."""
        if self.is_initialized:
            self.keys = _grown(self.keys, capacity, self.length)
            self.values = _grown(self.values, capacity, self.length)
        self.capacity = capacity

    def keep(self, start: int, columns: Tensor | None, count: int) -> None:
        """Leave ``start + count`` columns; ``columns`` (absolute) move to start if not None."""
        if columns is not None and self.is_initialized:
            for buffer in (self.keys, self.values):
                buffer[:, :, start : start + count] = buffer.index_select(2, columns)
        self.length = start + count


def _grown(buffer: Tensor, capacity: int, used: int) -> Tensor:
    larger = buffer.new_empty(*buffer.shape[:2], capacity, buffer.shape[-1])
    larger[:, :, :used] = buffer[:, :, :used]
    return larger


class KVCache(Cache):
    """All layers of one sequence."""

    def __init__(self, layers: int, capacity: int) -> None:
        super().__init__(layers=[KVLayer(capacity) for _ in range(layers)])
        self.capacity = capacity

    def reserve(self, columns: int) -> None:
        """Make sure that this many columns fit."""
        if columns <= self.capacity:
            return
        self.capacity = max(columns, 2 * self.capacity)
        for layer in self.layers:
            layer.reserve(self.capacity)

    def keep(self, start: int, rows: list[int]) -> None:
        """Keep columns [0, start) and, behind them, those at start + rows (ascending)."""
        in_place = rows == list(range(len(rows)))
        columns = None
        if not in_place:
            ready = [layer for layer in self.layers if layer.is_initialized]
            device = ready[0].keys.device
            buffers = [buffer for layer in ready for buffer in (layer.keys, layer.values)]
            in_place = gpu.takes(buffers[0]) and gpu.commit(buffers, start, rows)
        if not in_place:
            columns = torch.tensor(rows, device=device) + start
        for layer in self.layers:
            layer.keep(start, columns, len(rows))
