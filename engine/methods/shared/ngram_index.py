"""An index of the n-grams of a text."""

import sys
from collections.abc import Sequence


class NgramIndex:
    """A table that maps each n-gram of ``shortest`` to ``longest`` tokens to the position of the token that followed
    the latest occurrence of the n-gram. Each new token of the text adds longest - shortest + 1 entries."""

    def __init__(self, shortest: int, longest: int) -> None:
        self._sizes = range(longest, shortest - 1, -1)
        self._continued_at: dict[tuple[int, ...], int] = {}
        self._read = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the table and of its keys. The token ids in the keys are not counted, because they belong to the
        text."""
        keys = sum(map(sys.getsizeof, self._continued_at))
        return sys.getsizeof(self._continued_at) + keys

    def read(self, context: Sequence[int]) -> None:
        """Index the tokens of the text that are new since the last call."""
        for position in range(max(self._read, 1), len(context)):
            for size in self._sizes:
                if size <= position:
                    self._continued_at[tuple(context[position - size : position])] = position
        self._read = len(context)

    def latest(self, context: Sequence[int]) -> tuple[int, int] | None:
        """Find the longest n-gram at the end of the context that also occurred before. Returns the position of the
        token that followed the n-gram there, and n; None if no such n-gram occurred."""
        for size in self._sizes:
            if size < len(context):
                position = self._continued_at.get(tuple(context[-size:]))
                if position is not None:
                    return position, size
        return None
