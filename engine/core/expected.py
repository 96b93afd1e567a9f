"""A text that is about to begin, as far as its size is known."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    """prompt: its tokens. length: the most tokens of the whole text. Both are 0 if they are not known."""

    prompt: int = 0
    length: int = 0


UNKNOWN = Expected()
