"""Which columns the rows of one pass may see."""

from functools import cached_property

import torch
from torch import Tensor


class RowMask:
    """R rows, the last of S scratch rows, against T = committed + S columns.

    A row sees all committed columns and, of the scratch rows, its ancestors and itself.
    committed: columns before the scratch rows. depths: of all S scratch rows, 0 for a child of
    the last committed token. ancestors: of the R rows; bit s of an entry: the row sees scratch
    row s. first: the place in the text of a child of the last committed token, where columns were left out before it.
    Everything the layers need is computed once per pass, and only if a layer needs it.
    """

    def __init__(
        self,
        committed: int,
        depths: list[int],
        ancestors: list[int],
        device: torch.device,
        first: int | None = None,
    ) -> None:
        self._committed = committed
        self.first = committed if first is None else first
        self._all_depths = depths
        self._depths = depths[len(depths) - len(ancestors) :]
        self._ancestors = ancestors
        self._device = device
        self._windowed: dict[int, Tensor] = {}

    @property
    def committed(self) -> int:
        """Columns before the scratch rows."""
        return self._committed

    @property
    def depths(self) -> list[int]:
        """Depths of the R rows."""
        return self._depths

    @property
    def ancestors(self) -> list[int]:
        """Ancestors of the R rows; see the class."""
        return self._ancestors

    @property
    def scratch(self) -> int:
        """S, how many scratch rows there are."""
        return len(self._all_depths)

    def hides(self, window: int | None) -> bool:
        """Whether this sliding window hides anything from a row."""
        return window is not None and self.span[1] >= window

    @property
    def span(self) -> tuple[int, int]:
        """The rows' lowest and highest position in the text."""
        return self._committed + min(self._depths), self._committed + max(self._depths)

    @property
    def consecutive(self) -> bool:
        """Whether the rows follow one another in the text."""
        first = self._depths[0]
        return self._depths == list(range(first, first + len(self._depths)))

    @cached_property
    def row_positions(self) -> Tensor:
        """[R], places in the text."""
        return (torch.tensor(self._depths) + self.first).to(self._device)

    @cached_property
    def column_positions(self) -> Tensor:
        """[T], places in the text."""
        scratch = torch.tensor(self._all_depths) + self._committed
        return torch.cat([torch.arange(self._committed), scratch]).to(self._device)

    @cached_property
    def visible(self) -> Tensor | None:
        """bool [R, T], or None where every row sees all columns (plain decoding)."""
        scratch = len(self._all_depths)
        if all(seen == (1 << scratch) - 1 for seen in self._ancestors):
            return None
        seen = torch.ones(len(self._ancestors), self._committed + scratch, dtype=torch.bool)
        seen[:, self._committed :] = _bits(self._ancestors, scratch)
        return seen.to(self._device)

    def within(self, window: int | None) -> Tensor | None:
        """The mask of a layer with this sliding window (None: no window); kept for layers with the same one."""
        if not self.hides(window):
            return self.visible
        if window not in self._windowed:
            near = self.row_positions[:, None] - self.column_positions[None, :] < window
            self._windowed[window] = near if self.visible is None else self.visible & near
        return self._windowed[window]


def _bits(sets: list[int], size: int) -> Tensor:
    """bool [len(sets), size]: bit j of each entry."""
    width = (size + 7) // 8
    packed = bytearray(b"".join(entry.to_bytes(width, "little") for entry in sets))
    octets = torch.frombuffer(packed, dtype=torch.uint8).view(len(sets), width, 1)
    return (octets >> torch.arange(8, dtype=torch.uint8) & 1).bool().flatten(1)[:, :size]
