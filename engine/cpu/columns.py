"""Keys and values of all layers in one buffer, read by both compiled graphs and the module."""

import numpy as np
import torch
from torch import Tensor

from engine.cpu.calls import shared
from engine.cpu.row_shape import RowShape
from engine.target.cache import KVCache, KVLayer

STEP = 128
"""Capacities are multiples of this, so that a graph's preparations for one size also serve the next text."""


class Columns(KVCache):
    """buffer [2 N, Hkv, C, D]: k and v of each of the N layers.

    ``given``: the same memory as a compiled graph takes it, k and v of each layer, [1, Hkv, C, D].
    ``shape``: how many rows the passes that read the buffer have.
    """

    def __init__(self, layers: int, heads: int, size: int, capacity: int, shape: RowShape) -> None:
        super().__init__([KVLayer(capacity) for _ in range(layers)])
        self.shape = shape
        self._hold(torch.zeros(2 * layers, heads, _rounded(capacity), size))

    def _hold(self, buffer: Tensor) -> None:
        self._buffer, self.capacity = buffer, buffer.shape[2]
        self._array = buffer.numpy()
        for index, layer in enumerate(self.layers):
            layer.keys, layer.values = buffer[2 * index, None], buffer[2 * index + 1, None]
            layer.capacity, layer.is_initialized = self.capacity, True
        self.given = [shared(own[None]) for own in self._array]
        self._between: dict[tuple[int, int], list] = {}

    def between(self, first: int, stop: int) -> list:
        """The part of ``given`` that belongs to the layers first to stop - 1; the same list each time."""
        return self._between.setdefault((first, stop), self.given[2 * first : 2 * stop])

    def write(self, first: int, start: int, fresh: np.ndarray, count: int) -> None:
        """Put the first ``count`` rows of k and v [2 n, Hkv, R, D] of n layers, from ``first`` on, at column
        ``start``. The number of columns in use stays the same."""
        layers = slice(2 * first, 2 * first + len(fresh))
        self._array[layers, :, start : start + count] = fresh[:, :, :count]

    def append(self, fresh: np.ndarray, count: int) -> None:
        """Put the first ``count`` rows of [2 N, Hkv, R, D] after the columns in use, where there is room."""
        start = self.length
        self._array[:, :, start : start + count] = fresh[:, :, :count]
        self.length = start + count

    def reserve(self, columns: int) -> None:
        if columns > self.capacity:
            size = _rounded(max(columns, 2 * self.capacity))
            larger = self._buffer.new_zeros(*self._buffer.shape[:2], size, self._buffer.shape[3])
            larger[:, :, : self.length] = self._buffer[:, :, : self.length]
            self._hold(larger)

    def keep(self, start: int, rows: list[int]) -> None:
        count = len(rows)
        if rows != list(range(count)):
            step = self._array[:, :, start : self.length]
            self._array[:, :, start : start + count] = step[:, :, rows]
        self.length = start + count


def _rounded(columns: int) -> int:
    return -(-columns // STEP) * STEP
