"""How many rows a draft model reads in one call when it writes a chain.

A call that reads several rows, each the likeliest token after the row before, costs less than as many calls. But a
chain may stop early, and then the rest was read in vain. So the number depends on the lengths of the last chains.
"""

from collections import deque
from collections.abc import Sequence

REMEMBERED = 12  # chains
CALL = 0.8
"""Milliseconds that a call adds to those of its rows, where a row takes one millisecond; measured on two cores."""


class ReadAhead:
    """blocks: the numbers of rows that one call can read, beside 1."""

    def __init__(self, blocks: Sequence[int]) -> None:
        self._blocks = blocks
        self._reads: deque[int] = deque(maxlen=REMEMBERED)

    def saw(self, reads: int) -> None:
        """Take note of a chain for which this many rows were wanted."""
        self._reads.append(reads)

    def rows(self, most: int, room: int, before: int = 0) -> int:
        """The number of rows to read in the next call for a chain that wants at most ``most`` more. room: rows that fit
        into the model's context. before: how many rows the chain has asked for."""
        fit = [1, *(block for block in self._blocks if most > 1 and block <= room)]
        wanted = [min(reads - before, most) for reads in self._reads if reads > before]
        wanted = wanted or [1 if self._reads else most]
        return min(fit, key=lambda block: sum(_cost(block, reads) for reads in wanted))


def _cost(block: int, reads: int) -> float:
    """A call of ``block`` rows, and then one call for each row that is still wanted."""
    later = max(0, reads - block)
    return CALL + block + later * (CALL + 1)
