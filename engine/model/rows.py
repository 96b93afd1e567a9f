"""The rows of one pass: their tokens, and which of the rows since the last commit each row sees."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rows:
    """The rows of one sequence in a pass, which are the last of the sequence's scratch rows.

    prefix: number of committed columns. depths: the depths of all scratch rows so far, with these rows at the end.
    ancestors: one integer for each of these rows, whose bit s says that the row sees scratch row s.
    """

    tokens: Sequence[int]
    prefix: int
    depths: Sequence[int]
    ancestors: Sequence[int]

    @property
    def behind(self) -> int:
        """The number of scratch rows before the rows of this pass."""
        return len(self.depths) - len(self.tokens)
