"""An index of the n-grams of a text."""

import sys
from collections.abc import Sequence


class NgramIndex:
    """For each n-gram of ``shortest`` to ``longest`` tokens, the position of the token that followed its latest
    occurrence. Reading a token adds longest - shortest + 1 entries."""

    def __init__(self, shortest: int, longest: int) -> None:
        self._sizes = range(longest, shortest - 1, -1)
        self._continued_at: dict[tuple[int, ...], int] = {}
        self._read = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the table and its keys, without the token ids in the keys, which belong to the text."""
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
        """For the longest n-gram at the end of the context that occurred before: the position of the token that
        followed it, and n. None if there is no such n-gram."""
        for size in self._sizes:
            if size < len(context):
                position = self._continued_at.get(tuple(context[-size:]))
                if position is not None:
                    return position, size
        return None
