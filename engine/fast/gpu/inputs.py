"""The int32 buffer of a pass. It holds everything that the pass reads except weights and KV, and one copy fills it."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.transfer import into
from engine.fast.gpu.question import Question
from engine.fast.kernels.bits import WORD, AncestorBits
from engine.fast.kernels.lang import power_of_two
from engine.model.rows import Rows

ROWS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 160)
"""Numbers of rows that passes may have, the root's row included. Multiplied by the query heads per KV head (4 or 8 in
most models), these numbers fill the attention kernel's tiles exactly: one row more would cost another tile, for which
the whole prefix is read again."""

_ALIGNED = 4  # each part begins at a multiple of this many numbers (16 bytes)


@dataclass(frozen=True)
class Size:
    """The size of a pass. rows: the number of its rows, padding included. words: the number of scratch rows that its
    mask covers, in units of 32."""

    rows: int
    words: int

    @property
    def scratch(self) -> int:
        """The number of columns after the committed ones that the pass may read or write."""
        return WORD * self.words

    @classmethod
    def of(cls, count: int, behind: int) -> "Size | None":
        """The smallest size of a pass for ``count`` rows, if earlier passes have left ``behind`` scratch rows; None if
        ``count`` is more than the largest of ROWS."""
        rows = next((rows for rows in ROWS if rows >= count), None)
        if rows is None:
            return None
        return cls(rows, power_of_two(-(-(behind + rows) // WORD)))


@dataclass(frozen=True)
class DeviceRows(Rows):
    """Rows whose tokens may be on the device only.

    ids: the tokens of all rows but the first, int32 [len(tokens) - 1], if they are on the device only; else None.
    question: set if the pass judges the tree of these rows, else None.
    """

    ids: Tensor | None = None
    question: Question | None = None


class StepInputs:
    """The buffer of a pass of one size over B sequences, and its parts as views.

    Letters in shapes: R rows of the pass, S scratch rows (those of the pass and those of earlier passes, not yet
    committed), W words of 32 bits.

    prefix: the number of committed columns, [B]. behind: for each sequence, the number of scratch rows that earlier
    passes have read, [B]. tokens: [B, R]. own: the depths of the rows, [B, R]. depths: the depths of all scratch rows,
    [B, S]. bits: the scratch rows that each row sees, [B, R, W]. more: further parts [B, width], which a subclass adds.
    """

    def __init__(self, size: Size, device: torch.device, sequences: int = 1) -> None:
        self.size = size
        self._widths = self._room(size)
        self._places = [0]
        for width in self._widths:
            room = -(-sequences * width // _ALIGNED) * _ALIGNED
            self._places.append(self._places[-1] + room)
        self.buffer = torch.zeros(self._places[-1], dtype=torch.int32, device=device)
        parts = [
            self.buffer[begin : begin + sequences * width].view(sequences, width)
            for begin, width in zip(self._places, self._widths, strict=False)
        ]
        self.prefix, self.behind = (part[:, 0] for part in parts[:2])
        self.tokens, self.own, self.depths, bits, *self.more = parts[2:]
        self.bits = bits.view(sequences, size.rows, size.words)

    def _room(self, size: Size) -> tuple[int, ...]:
        """The number of int32 numbers in each part, for one sequence."""
        return 1, 1, size.rows, size.rows, size.scratch, size.rows * size.words

    def _numbers(self, rows: DeviceRows) -> tuple[Sequence[int], ...]:
        """The numbers with which each part begins, for one sequence; the rest of the part is filled with 0."""
        return (
            (rows.prefix,), (rows.behind,), rows.tokens, rows.depths[rows.behind :],
            rows.depths, array("i", self._seen(rows)),
        )  # fmt: skip

    def load(self, *given: DeviceRows) -> None:
        """Fill the buffer for a pass. given: the rows of each sequence, one argument per sequence."""
        numbers = array("i", bytes(4 * self._places[-1]))
        for sequence, rows in enumerate(given):
            parts = self._numbers(rows)
            for begin, width, part in zip(self._places, self._widths, parts, strict=False):
                at = begin + sequence * width
                numbers[at : at + len(part)] = array("i", part)
        into(self.buffer, torch.frombuffer(numbers, dtype=torch.int32))
        for sequence, rows in enumerate(given):
            if rows.ids is not None:
                self.tokens[sequence, 1 : len(rows.tokens)].copy_(rows.ids)

    def _seen(self, rows: DeviceRows) -> bytes:
        """The bytes of ``bits``, for one sequence. A padding row sees the prefix and itself, so that its numbers stay
        finite."""
        padding = range(rows.behind + len(rows.tokens), rows.behind + self.size.rows)
        masks = [*rows.ancestors, *(1 << row for row in padding)]
        return b"".join(entry.to_bytes(4 * self.size.words, "little") for entry in masks)

    def mask(self, longest: int) -> AncestorBits:
        return AncestorBits(self.bits, self.depths, self.prefix, longest, self.own)
