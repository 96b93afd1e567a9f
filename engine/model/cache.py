"""The KV cache: committed columns first, then the rows of the running step.

The buffers stay in place. A step writes its rows after the committed columns. A commit moves the accepted rows to the
columns directly after the committed ones, and later rows overwrite the others. No column of the prefix is copied.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

CAPACITY = 256
"""First capacity, in columns, for a text whose length is unknown; full buffers double."""


class KVLayer(CacheLayerMixin):
    """One layer's keys and values, [B, Hkv, capacity, D] each: B sequences, Hkv key-value heads, head size D.

    length: the number of columns in use; the owner, a KVCache, sets it.
    """

    is_sliding = False  # windows are applied by the mask, because a tree may reach back past them

    def __init__(self, capacity: int, sequences: int = 1) -> None:
        super().__init__()
        self.capacity = capacity
        self._sequences = sequences
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        shape = (self._sequences, key_states.shape[1], self.capacity)
        # zeros, because unwritten columns may be multiplied by a weight of 0
        self.keys = key_states.new_zeros(*shape, key_states.shape[-1])
        self.values = value_states.new_zeros(*shape, value_states.shape[-1])
        self.is_initialized = True

    @property
    def ready(self) -> bool:
        """Whether the buffers exist."""
        return self.is_initialized

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        """Append keys and values of R rows, [B, Hkv, R, D] each; returns views of all columns in use."""
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

    def take_over(self, source: "KVLayer", count: int) -> None:
        """Replace this layer's columns by copies of the source's first ``count`` columns."""
        if source.is_initialized:
            if not self.is_initialized:
                self.lazy_initialization(source.keys, source.values)
            self.keys[:, :, :count] = source.keys[:, :, :count]
            self.values[:, :, :count] = source.values[:, :, :count]
        self.length = count

    def reserve(self, capacity: int) -> None:
        """Grow the buffers to this capacity. The owner doubles the capacity each time, so the cost of all copies
        together is linear in the length of the text."""
        if self.is_initialized:
            self.keys = _grown(self.keys, capacity, self.length)
            self.values = _grown(self.values, capacity, self.length)
        self.capacity = capacity

    def keep(self, start: int, columns: Tensor | None, count: int) -> None:
        """Keep ``start + count`` columns: the columns before ``start``, and ``count`` more. columns: the column
        numbers, [count], of those that move to ``start`` and after it; None if they are in place already."""
        if columns is not None and self.is_initialized:
            for buffer in (self.keys, self.values):
                buffer[:, :, start : start + count] = buffer.index_select(2, columns)
        self.length = start + count


def _grown(buffer: Tensor, capacity: int, used: int) -> Tensor:
    larger = buffer.new_zeros(*buffer.shape[:2], capacity, buffer.shape[-1])
    larger[:, :, :used] = buffer[:, :, :used]
    return larger


class KVCache(Cache):
    """The keys and values of all layers, for one sequence or for several sequences side by side."""

    def __init__(self, layers: Sequence[KVLayer]) -> None:
        super().__init__(layers=list(layers))
        self.capacity = self.layers[0].capacity

    @classmethod
    def empty(cls, layers: int, capacity: int, sequences: int = 1) -> "KVCache":
        return cls([KVLayer(capacity, sequences) for _ in range(layers)])

    @property
    def ready(self) -> bool:
        """Whether the buffers exist. The first update creates them."""
        return all(layer.ready for layer in self.layers)

    @property
    def length(self) -> int:
        """The number of columns in use."""
        return self.layers[0].length

    @length.setter
    def length(self, columns: int) -> None:
        for layer in self.layers:
            layer.length = columns

    def reserve(self, columns: int) -> None:
        """Grow the buffers, if necessary, until this many columns fit."""
        if columns <= self.capacity:
            return
        self.capacity = max(columns, 2 * self.capacity)
        for layer in self.layers:
            layer.reserve(self.capacity)

    def take_over(self, source: "KVCache", count: int) -> None:
        """Replace all columns by copies of the source's first ``count`` columns."""
        self.reserve(count)
        for layer, source_layer in zip(self.layers, source.layers, strict=True):
            layer.take_over(source_layer, count)

    def keep(self, start: int, rows: list[int]) -> None:
        """Keep the columns before ``start`` and, after them, column ``start + row`` for each row in ``rows``. rows:
        ascending."""
        columns = None
        if rows != list(range(len(rows))) and not self._moved(start, rows):
            device = next(layer for layer in self.layers if layer.is_initialized).keys.device
            columns = torch.tensor(rows, device=device) + start
        for layer in self.layers:
            layer.keep(start, columns, len(rows))

    def _moved(self, start: int, rows: list[int]) -> bool:
        """Move these rows in a faster way than layer by layer, if a subclass has such a way. Returns whether the rows
        were moved."""
        return False
