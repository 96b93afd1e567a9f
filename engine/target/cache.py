"""KV cache: committed columns first, the rows of the running step behind them.

The buffers keep their place. A step writes its rows behind the committed columns; committing
moves the kept ones down and lets the rest be overwritten. Nothing of the prefix is copied.
"""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from engine.gpu import kernel_calls


class KVLayer(CacheLayerMixin):
    """One layer's keys and values, [B, Hkv, capacity, D] each.

    ``length`` columns are in use; the owner (KVCache) sets it. columns: int64 [B, R], where the
    next rows go; None is behind those in use.
    """

    is_sliding = False  # windows are applied by the mask, for a tree may reach back past them

    def __init__(self, capacity: int, sequences: int = 1) -> None:
        super().__init__()
        self.capacity = capacity
        self._sequences = sequences
        self.length = 0
        self.columns: Tensor | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        shape = (self._sequences, key_states.shape[1], self.capacity)
        # zeros: a pass on static buffers multiplies columns that nobody has written by a weight of 0
        self.keys = key_states.new_zeros(*shape, key_states.shape[-1])
        self.values = value_states.new_zeros(*shape, value_states.shape[-1])
        self.is_initialized = True

    @property
    def ready(self) -> bool:
        """Whether the buffers exist."""
        return self.is_initialized

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        """Append rows [B, Hkv, R, D]; returns views of all columns in use.

        With ``columns`` the rows go there, and what returns are the whole buffers.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if self.columns is not None:
            at = self.columns[:, None, :, None]
            self.keys.scatter_(2, at.expand_as(key_states), key_states)
            self.values.scatter_(2, at.expand_as(value_states), value_states)
            return self.keys, self.values
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
        """Begin with copies of the source's first ``count`` columns."""
        if source.is_initialized:
            if not self.is_initialized:
                self.lazy_initialization(source.keys, source.values)
            self.keys[:, :, :count] = source.keys[:, :, :count]
            self.values[:, :, :count] = source.values[:, :, :count]
        self.length = count

    def reserve(self, capacity: int) -> None:
        """Grow the buffers; the owner doubles, so the copies stay linear in the length."""
        if self.is_initialized:
            self.keys = _grown(self.keys, capacity, self.length)
            self.values = _grown(self.values, capacity, self.length)
        self.capacity = capacity

    def move(self, targets: Tensor, sources: Tensor) -> None:
        """Columns ``sources`` become columns ``targets``; int64 [B, R] both."""
        for buffer in (self.keys, self.values):
            there, here = (
                columns[:, None, :, None].expand(-1, buffer.shape[1], -1, buffer.shape[3])
                for columns in (targets, sources)
            )
            buffer.scatter_(2, there, buffer.gather(2, here))

    def keep(self, start: int, columns: Tensor | None, count: int) -> None:
        """Leave ``start + count`` columns; ``columns`` (absolute) move to start if not None."""
        if columns is not None and self.is_initialized:
            for buffer in (self.keys, self.values):
                buffer[:, :, start : start + count] = buffer.index_select(2, columns)
        self.length = start + count


class RowLayer(KVLayer):
    """One sequence's part of a layer that holds several: the same memory, which cannot grow."""

    def __init__(self, whole: KVLayer, row: int) -> None:
        super().__init__(whole.capacity)
        self._whole, self._row = whole, slice(row, row + 1)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        if not self._whole.is_initialized:
            self._whole.lazy_initialization(key_states, value_states)
        self.keys, self.values = self._whole.keys[self._row], self._whole.values[self._row]
        self.is_initialized = True

    @property
    def ready(self) -> bool:
        if self._whole.is_initialized and not self.is_initialized:
            self.lazy_initialization(self._whole.keys, self._whole.values)
        return self.is_initialized

    def reserve(self, capacity: int) -> None:
        raise ValueError(f"{capacity} columns do not fit where several sequences lie side by side")


def _grown(buffer: Tensor, capacity: int, used: int) -> Tensor:
    larger = buffer.new_zeros(*buffer.shape[:2], capacity, buffer.shape[-1])
    larger[:, :, :used] = buffer[:, :, :used]
    return larger


class KVCache(Cache):
    """All layers of one sequence, or of several side by side, each a ``row``."""

    def __init__(self, layers: Sequence[KVLayer]) -> None:
        super().__init__(layers=list(layers))
        self.capacity = self.layers[0].capacity
        self._addresses: Tensor | None = None

    @classmethod
    def empty(cls, layers: int, capacity: int, sequences: int = 1) -> "KVCache":
        return cls([KVLayer(capacity, sequences) for _ in range(layers)])

    def row(self, index: int) -> "KVCache":
        """One of the sequences: a cache of its own on the same memory."""
        return KVCache([RowLayer(layer, index) for layer in self.layers])

    @property
    def ready(self) -> bool:
        """Whether the buffers exist, which the first rows to be written bring about."""
        return all(layer.ready for layer in self.layers)

    @property
    def length(self) -> int:
        """Columns in use."""
        return self.layers[0].length

    @length.setter
    def length(self, columns: int) -> None:
        for layer in self.layers:
            layer.length = columns

    @contextlib.contextmanager
    def written_at(self, columns: Tensor) -> Iterator[None]:
        """Within it rows go to these columns of the buffers, and ``length`` stays as it is."""
        try:
            for layer in self.layers:
                layer.columns = columns
            yield
        finally:
            for layer in self.layers:
                layer.columns = None

    def reserve(self, columns: int) -> None:
        """Make sure that this many columns fit."""
        if columns <= self.capacity:
            return
        self.capacity = max(columns, 2 * self.capacity)
        self._addresses = None
        for layer in self.layers:
            layer.reserve(self.capacity)

    def take_over(self, source: "KVCache", count: int) -> None:
        """Begin with copies of the source's first ``count`` columns."""
        self.reserve(count)
        for layer, other in zip(self.layers, source.layers, strict=True):
            layer.take_over(other, count)

    def keep(self, start: int, rows: list[int]) -> None:
        """Keep columns [0, start) and, behind them, those at start + rows (ascending)."""
        columns = None
        if rows != list(range(len(rows))) and not self._moved_by_kernel(start, rows):
            device = next(layer for layer in self.layers if layer.is_initialized).keys.device
            columns = torch.tensor(rows, device=device) + start
        for layer in self.layers:
            layer.keep(start, columns, len(rows))

    def move(self, start: Tensor, rows: Tensor, count: Tensor) -> None:
        """Move the rows at start + rows to start, start + 1, ..., by numbers that only the device
        knows: int32 [B], [B, R] and [B]. ``locate`` comes first, once; ``length`` stays.

        The first count[b] of rows[b] ascend, the others are their own index.
        """
        if self._addresses is not None:
            kernel_calls.move(self._buffers(), self._addresses, start, rows, count)
            return
        places = torch.arange(rows.shape[1], device=rows.device)
        targets, sources = start[:, None] + places, start[:, None] + rows.long()
        for layer in self.layers:
            layer.move(targets, sources)

    def locate(self) -> None:
        """Find out where the buffers begin, if a kernel will move their rows."""
        buffers = self._buffers()
        if self._addresses is None and kernel_calls.takes(buffers[0]):
            self._addresses = kernel_calls.addresses(buffers)

    def _buffers(self) -> list[Tensor]:
        ready = [layer for layer in self.layers if layer.is_initialized]
        return [buffer for layer in ready for buffer in (layer.keys, layer.values)]

    def _moved_by_kernel(self, start: int, rows: list[int]) -> bool:
        self.locate()
        if self._addresses is None:
            return False
        kernel_calls.commit(self._buffers(), self._addresses, start, rows)
        return True
