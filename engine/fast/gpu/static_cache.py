"""KV buffers for passes that read from the device which columns to write to, and for several sequences side by side.

Letters in shapes: B sequences, R rows of each in a pass.
"""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from engine.fast.gpu import kernel_calls
from engine.model.cache import KVCache, KVLayer


class StaticLayer(KVLayer):
    """A KV layer that can write rows to any columns.

    columns: int64 [B, R], the columns that the next rows are written to; if None, rows are written after the columns in
    use.
    """

    def __init__(self, capacity: int, sequences: int = 1) -> None:
        super().__init__(capacity, sequences)
        self.columns: Tensor | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        """Append rows as ``KVLayer.update`` does. If ``columns`` is set, write the rows to these columns and return the
        whole buffers."""
        if self.columns is None:
            return super().update(key_states, value_states)
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        at = self.columns[:, None, :, None]
        self.keys.scatter_(2, at.expand_as(key_states), key_states)
        self.values.scatter_(2, at.expand_as(value_states), value_states)
        return self.keys, self.values

    def move(self, targets: Tensor, sources: Tensor) -> None:
        """Copy columns ``sources`` to columns ``targets``, both int64 [B, R]."""
        for buffer in (self.keys, self.values):
            there, here = (
                columns[:, None, :, None].expand(-1, buffer.shape[1], -1, buffer.shape[3])
                for columns in (targets, sources)
            )
            buffer.scatter_(2, there, buffer.gather(2, here))


class RowLayer(StaticLayer):
    """One sequence's part of a layer that holds several sequences. It shares the layer's memory and cannot grow."""

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


class StaticCache(KVCache):
    """The layers of one sequence, or of several sequences side by side. ``row`` returns the cache of a single
    sequence."""

    def __init__(self, layers: Sequence[StaticLayer]) -> None:
        super().__init__(layers)
        self._addresses: Tensor | None = None

    @classmethod
    def empty(cls, layers: int, capacity: int, sequences: int = 1) -> "StaticCache":
        return cls([StaticLayer(capacity, sequences) for _ in range(layers)])

    def row(self, index: int) -> "StaticCache":
        """The cache of the sequence with this index, on the same memory."""
        return StaticCache([RowLayer(layer, index) for layer in self.layers])

    @contextlib.contextmanager
    def written_at(self, columns: Tensor) -> Iterator[None]:
        """A context in which rows are written to these columns of the buffers, int64 [B, R]; ``length`` stays as it
        is."""
        try:
            for layer in self.layers:
                layer.columns = columns
            yield
        finally:
            for layer in self.layers:
                layer.columns = None

    def reserve(self, columns: int) -> None:
        if columns > self.capacity:
            self._addresses = None
        super().reserve(columns)

    def move(self, start: Tensor, rows: Tensor, count: Tensor) -> None:
        """Move the columns start + rows to start, start + 1, ..., for each sequence. ``length`` stays as it is.

        start: int32 [B]. rows: int32 [B, R]; the first count[b] entries of rows[b] ascend, and every other entry is its
        own index. count: int32 [B]. All three are on the device. Call ``locate`` once before.
        """
        if self._addresses is not None:
            kernel_calls.move(self._buffers(), self._addresses, start, rows, count)
            return
        places = torch.arange(rows.shape[1], device=rows.device)
        targets, sources = start[:, None] + places, start[:, None] + rows.long()
        for layer in self.layers:
            layer.move(targets, sources)

    def locate(self) -> None:
        """Look up the addresses of the buffers, if a kernel will move their rows."""
        buffers = self._buffers()
        if self._addresses is None and kernel_calls.takes(buffers[0]):
            self._addresses = kernel_calls.addresses(buffers)

    def _buffers(self) -> list[Tensor]:
        ready = [layer for layer in self.layers if layer.is_initialized]
        return [buffer for layer in ready for buffer in (layer.keys, layer.values)]

    def _moved(self, start: int, rows: list[int]) -> bool:
        self.locate()
        if self._addresses is None:
            return False
        kernel_calls.commit(self._buffers(), self._addresses, start, rows)
        return True
