"""Rows of one pass: tokens, and which of the rows since the last commit each row sees."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rows:
    """One sequence's part of a pass: its last scratch rows.

    prefix: number of committed columns. depths: of all scratch rows fed so far, including these.
    ancestors: of these rows only; bit s of an entry: the row sees scratch row s.
    """

    tokens: Sequence[int]
    prefix: int
    depths: Sequence[int]
    ancestors: Sequence[int]

    @property
    def behind(self) -> int:
        """Scratch rows fed before these."""
        return len(self.depths) - len(self.tokens)
