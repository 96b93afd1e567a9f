"""Rows of one pass: tokens, and who sees whom among the rows since the last commit."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rows:
    """One sequence's part of a pass: its last scratch rows.

    prefix: committed columns. depths: of all scratch rows fed so far, these among them. ancestors:
    of these; bit s of an entry: the row sees scratch row s.
    """

    tokens: Sequence[int]
    prefix: int
    depths: Sequence[int]
    ancestors: Sequence[int]

    @property
    def behind(self) -> int:
        """Scratch rows fed before these."""
        return len(self.depths) - len(self.tokens)
