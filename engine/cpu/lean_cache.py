"""Keys and values of all layers in one buffer: committed columns, then the running step's."""

from torch import Tensor


class LeanCache:
    """buffer [layers, 2 * Hkv, capacity, D]: the k heads, then the v heads. ``length`` in use."""

    def __init__(self, buffer: Tensor) -> None:
        self.length = 0
        self._hold(buffer)

    def _hold(self, buffer: Tensor) -> None:
        """A layer's views are made once, not at every pass."""
        self._buffer = buffer
        heads = buffer.shape[1] // 2
        self._layers = [(own, own[None, :heads], own[None, heads:]) for own in buffer]

    @classmethod
    def empty(cls, layers: int, layer, capacity: int, like: Tensor) -> "LeanCache":
        """For so many blocks like ``layer``; dtype and device as ``like``."""
        shape = (layers, 2 * layer.kv_heads, capacity, layer.head_dim)
        return cls(like.new_empty(shape))

    def reserve(self, columns: int) -> None:
        """Make sure that this many columns fit; doubles, so the copies stay linear."""
        layers, heads, capacity, size = self._buffer.shape
        if columns <= capacity:
            return
        larger = self._buffer.new_empty(layers, heads, max(columns, 2 * capacity), size)
        larger[:, :, : self.length] = self._buffer[:, :, : self.length]
        self._hold(larger)

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Put rows [2 * Hkv, R, D] behind the columns in use; all k and v, [1, Hkv, T, D]."""
        count = rows.shape[1]
        own, keys, values = self._layers[layer]
        own.narrow(1, self.length, count).copy_(rows)
        end = self.length + count
        return keys.narrow(2, 0, end), values.narrow(2, 0, end)

    def take_over(self, source: "LeanCache", count: int) -> None:
        """Begin with copies of the source's first ``count`` columns."""
        self.reserve(count)
        self._buffer[:, :, :count] = source._buffer[:, :, :count]
        self.length = count

    def keep(self, start: int, rows: list[int]) -> None:
        """Keep columns [0, start) and, behind them, those at start + rows (ascending)."""
        count = len(rows)
        if rows != list(range(count)):
            step = self._buffer[:, :, start : self.length]
            self._buffer[:, :, start : start + count] = step[:, :, rows]
        self.length = start + count
