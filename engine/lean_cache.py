"""Keys and values of all layers in one buffer: committed columns, then the running step's."""

from torch import Tensor


class LeanCache:
    """buffer [layers, 2 * Hkv, capacity, D]: the k heads, then the v heads. ``length`` in use."""

    def __init__(self, buffer: Tensor) -> None:
        self._buffer = buffer
        self.length = 0

    def reserve(self, columns: int) -> None:
        """Make sure that this many columns fit; doubles, so the copies stay linear."""
        layers, heads, capacity, size = self._buffer.shape
        if columns <= capacity:
            return
        larger = self._buffer.new_empty(layers, heads, max(columns, 2 * capacity), size)
        larger[:, :, : self.length] = self._buffer[:, :, : self.length]
        self._buffer = larger

    def write(self, layer: int, rows: Tensor) -> Tensor:
        """Put rows [2 * Hkv, R, D] behind the columns in use; returns all, [2 * Hkv, T, D]."""
        end = self.length + rows.shape[1]
        own = self._buffer[layer]
        own[:, self.length : end] = rows
        return own[:, :end]

    def keep(self, start: int, rows: list[int]) -> None:
        """Keep columns [0, start) and, behind them, those at start + rows (ascending)."""
        count = len(rows)
        if rows != list(range(count)):
            step = self._buffer[:, :, start : self.length]
            self._buffer[:, :, start : start + count] = step[:, :, rows]
        self.length = start + count
