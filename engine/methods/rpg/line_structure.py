"""The structure of a text, line by line, and where it repeats.

Dong et al., Rethinking Repetition Problems of LLMs in Code Generation (2025). As in the authors' program, a line is the kinds of its
words: names are alike, numbers are alike and strings are alike, keywords and operators are themselves, and a blank at its beginning
counts. Where the text is Python, its grammar tells more (``engine.methods.rpg.python_structure``).
"""

import keyword
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import count

WORDS = re.compile(
    r"""(?P<string>"[^"]*"|'[^']*')|(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<other>[^\w\s])"""
)
LONGEST = 12  # lines of a repeated block
SEEN = 120  # last lines that are looked at

Line = tuple[str, ...]
Structure = tuple[Line, int]
"""What a line or a statement is made of, and the index of its first line."""


@lru_cache(4096)
def kinds(line: str) -> Line:
    """The kinds of the words of a line."""
    found = [line[: len(line) - len(line.lstrip())]]
    for word in WORDS.finditer(line):
        own = word.lastgroup == "other" or keyword.iskeyword(word[0])
        found.append(word[0] if own else word.lastgroup)
    return tuple(found)


def structures(lines: Sequence[str]) -> list[Structure]:
    """The structures of the last lines, each with the index of its line."""
    first = max(0, len(lines) - SEEN)
    return [(kinds(line), place) for place, line in enumerate(lines[first:], first)]


def repeated(lines: Sequence[Line]) -> tuple[int, int]:
    """(lines, or statements, of the shortest block that the text ends with twice or more, how often it came before its last
    time); (0, 0) if there is none. A block of blank lines is none."""
    for size in range(1, min(LONGEST, len(lines) // 2) + 1):
        block = lines[-size:]
        if not any(len(line) > 1 for line in block):
            continue
        before = next(
            times
            for times in count(1)
            if lines[-(times + 1) * size : len(lines) - times * size] != block
        )
        if before > 1:
            return size, before - 1
    return 0, 0
