"""The mask of a pass: which columns each of its rows sees."""

from functools import cached_property

import torch
from torch import Tensor


class RowMask:
    """The mask of R rows over T = committed + S columns. The R rows are the last of S scratch rows.

    A row sees all committed columns and, among the scratch rows, its ancestors and itself. The tensors that the layers
    need are computed once per pass, and only if a layer needs them.

    committed: number of columns before the scratch rows. depths: the depths of all S scratch rows; a child of the last
    committed token has depth 0. ancestors: one integer for each of the R rows, whose bit s says that the row sees
    scratch row s. first: the position in the text of a child of the last committed token; None means that it equals
    ``committed``; it differs if columns of the text were left out.
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
        """The number of columns before the scratch rows."""
        return self._committed

    @property
    def depths(self) -> list[int]:
        """The depths of the R rows."""
        return self._depths

    @property
    def ancestors(self) -> list[int]:
        """For each of the R rows, an integer whose bit s says that the row sees scratch row s."""
        return self._ancestors

    @property
    def scratch(self) -> int:
        """The number S of scratch rows."""
        return len(self._all_depths)

    def hides(self, window: int | None) -> bool:
        """Whether a sliding window hides a column from one of the rows. window: its length in tokens; None means no
        window."""
        return window is not None and self.span[1] >= window

    @property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest of the rows' positions, if every committed column counts as one position, whatever
        columns were left out of the text."""
        return self._committed + min(self._depths), self._committed + max(self._depths)

    @property
    def consecutive(self) -> bool:
        """Whether the rows' positions are consecutive: each row is one position after the row before it in the pass."""
        first = self._depths[0]
        return self._depths == list(range(first, first + len(self._depths)))

    @cached_property
    def row_positions(self) -> Tensor:
        """The rows' positions in the text, [R]."""
        return (torch.tensor(self._depths) + self.first).to(self._device)

    @cached_property
    def column_positions(self) -> Tensor:
        """The columns' positions, [T]. They are positions in the text, unless columns before the scratch rows were left
        out; then they are counted without the missing columns."""
        scratch = torch.tensor(self._all_depths) + self._committed
        return torch.cat([torch.arange(self._committed), scratch]).to(self._device)

    @cached_property
    def visible(self) -> Tensor | None:
        """The mask without a window, bool [R, T]; None if every row sees all columns, as in plain decoding."""
        scratch = len(self._all_depths)
        if all(seen == (1 << scratch) - 1 for seen in self._ancestors):
            return None
        seen = torch.ones(len(self._ancestors), self._committed + scratch, dtype=torch.bool)
        seen[:, self._committed :] = _bits(self._ancestors, scratch)
        return seen.to(self._device)

    def within(self, window: int | None) -> Tensor | None:
        """The mask of a layer with this sliding window, bool [R, T], or None if every row sees all columns.

        window: in tokens; None means no window. Masks are reused by layers with the same window."""
        if not self.hides(window):
            return self.visible
        if window not in self._windowed:
            near = self.row_positions[:, None] - self.column_positions[None, :] < window
            self._windowed[window] = near if self.visible is None else self.visible & near
        return self._windowed[window]


def _bits(sets: list[int], size: int) -> Tensor:
    """Bit masks as a bool tensor [len(sets), size]; element [i, j] is bit j of sets[i]."""
    width = (size + 7) // 8
    packed = bytearray(b"".join(entry.to_bytes(width, "little") for entry in sets))
    octets = torch.frombuffer(packed, dtype=torch.uint8).view(len(sets), width, 1)
    return (octets >> torch.arange(8, dtype=torch.uint8) & 1).bool().flatten(1)[:, :size]
