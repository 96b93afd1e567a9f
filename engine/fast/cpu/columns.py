"""Keys and values of all layers in one buffer, which both the compiled graphs and the module read.

A column is the keys and values of one token position. Letters in shapes: N layers, Hkv key-value heads, C columns, R
rows of a pass, D head size.
"""

import weakref

import numpy as np
import torch

from engine.core.load import Expected
from engine.fast.cpu.calls import shared
from engine.fast.cpu.row_shape import RowShape
from engine.model.cache import KVCache, KVLayer

FIRST = 128
"""The capacity, in columns, with which the text of a small model begins; a full buffer doubles. So texts have only few
different capacities. That saves memory, because a drafting graph (``engine.fast.cpu.ahead``) serves only one
capacity."""

STEP = 128
"""All capacities are multiples of this number. So texts of similar length get the same capacity, and what a graph has
prepared for one text's buffer serves the next text too."""

MOST_FREE = 4
"""The most buffers of one size that a model keeps for new texts after the buffers' own texts have ended."""
MOST_FREE_BYTES = 2**26
"""The most bytes of all buffers together that a model keeps for new texts."""


class Buffer:
    """The memory for the columns of one text: keys and values of N layers. numbers: one tensor [2 N, Hkv, C, D] over
    this memory. given: the same memory as arguments of a compiled graph, keys and values of each layer, [1, Hkv, C,
    D]."""

    def __init__(self, *shape: int) -> None:
        self.numbers = torch.zeros(*shape)
        self.given = [shared(own[None]) for own in self.numbers.numpy()]
        self._between: dict[tuple[int, int], list] = {}

    def between(self, first: int, stop: int) -> list:
        """The part of ``given`` that belongs to the layers first to stop - 1; repeated calls return the same list."""
        return self._between.setdefault((first, stop), self.given[2 * first : 2 * stop])


class Buffers:
    """The buffers of one model. A buffer whose text has ended serves a new text. That saves time: its memory is
    allocated already, and the graph that read the buffer last still has it set as an argument."""

    def __init__(self) -> None:
        self._free: dict[torch.Size, list[Buffer]] = {}

    def take(self, *shape: int) -> Buffer:
        """A buffer of zeros with this shape."""
        try:
            buffer = self._free[torch.Size(shape)].pop()
        except (KeyError, IndexError):
            return Buffer(*shape)
        buffer.numbers.zero_()  # numbers that a graph masks must still be finite
        return buffer

    def give_back(self, buffer: Buffer) -> None:
        free = self._free.setdefault(buffer.numbers.shape, [])
        held = sum(entry.numbers.nbytes for entries in self._free.values() for entry in entries)
        if len(free) < MOST_FREE and held + buffer.numbers.nbytes <= MOST_FREE_BYTES:
            free.append(buffer)


class Columns(KVCache):
    """The columns of one text, in one of the model's buffers. shape: the ``RowShape`` that decides how many rows each
    pass over the text has."""

    def __init__(
        self,
        buffers: Buffers,
        layers: int,
        heads: int,
        size: int,
        capacity: int,
        shape: RowShape,
    ) -> None:
        super().__init__([KVLayer(capacity) for _ in range(layers)])
        self.shape = shape
        self._buffers, self._ended = buffers, None
        self._hold(buffers.take(2 * layers, heads, _rounded(capacity), size))

    def _hold(self, buffer: Buffer) -> None:
        if self._ended is not None:
            self._ended()
        self._ended = weakref.finalize(self, self._buffers.give_back, buffer)
        self._ended.atexit = False
        self._buffer, self.capacity = buffer, buffer.numbers.shape[2]
        self._array = buffer.numbers.numpy()
        for index, layer in enumerate(self.layers):
            layer.keys, layer.values = (buffer.numbers[2 * index + side, None] for side in (0, 1))
            layer.capacity, layer.is_initialized = self.capacity, True

    @property
    def given(self) -> list:
        """The buffer's memory as the arguments of a compiled graph: k and v of each layer, [1, Hkv, C, D]."""
        return self._buffer.given

    def between(self, first: int, stop: int) -> list:
        """The part of ``given`` that belongs to the layers first to stop - 1; repeated calls return the same list."""
        return self._buffer.between(first, stop)

    def write(self, first: int, start: int, fresh: np.ndarray, count: int) -> None:
        """Write the first ``count`` rows of ``fresh`` to the columns from ``start`` on. fresh: keys and values [2 n,
        Hkv, R, D] of n consecutive layers. first: the index of the first of these layers. The number of columns in use
        stays the same."""
        layers = slice(2 * first, 2 * first + len(fresh))
        self._array[layers, :, start : start + count] = fresh[:, :, :count]

    def append(self, fresh: np.ndarray, count: int) -> None:
        """Write the first ``count`` rows of ``fresh`` [2 N, Hkv, R, D] directly after the columns in use. The caller
        has reserved the room."""
        start = self.length
        self._array[:, :, start : start + count] = fresh[:, :, :count]
        self.length = start + count

    def reserve(self, columns: int) -> None:
        if columns > self.capacity:
            size = doubled(self.capacity, columns)
            old = self._buffer.numbers
            larger = self._buffers.take(*old.shape[:2], size, old.shape[3])
            larger.numbers[:, :, : self.length] = old[:, :, : self.length]
            self._hold(larger)

    def keep(self, start: int, rows: list[int]) -> None:
        count = len(rows)
        if rows != list(range(count)):
            step = self._array[:, :, start : self.length]
            self._array[:, :, start : start + count] = step[:, :, rows]
        self.length = start + count


def doubled(capacity: int, columns: int) -> int:
    """The capacity, doubled as often as necessary to hold this many columns."""
    while capacity < columns:
        capacity *= 2
    return capacity


def capacities(coming: Expected, rows: int) -> list[int]:
    """The buffer capacities that a small model's passes over ``rows`` rows need in the coming text: the capacity that
    holds the prompt and, if the text may outgrow that, its double. A third capacity is seldom needed and left out."""
    first = doubled(FIRST, coming.prompt + rows)
    return [first, 2 * first] if coming.length + rows > first else [first]


def _rounded(columns: int) -> int:
    return -(-columns // STEP) * STEP
