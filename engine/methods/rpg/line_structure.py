"""The structure of a text, line by line, and the search for repeated structures.

Dong et al., Rethinking Repetition Problems of LLMs in Code Generation (2025). As in the authors' program, the structure
of a line is its leading blanks and the kinds of its words. All names are of one kind, all numbers of another and all
strings of a third; each keyword and each operator is a kind of its own. For Python, the grammar is used instead
(``engine.methods.rpg.python_structure``).
"""

import keyword
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import count

WORDS = re.compile(
    r"""(?P<string>"[^"]*"|'[^']*')|(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<other>[^\w\s])"""
)
LONGEST = 12  # most lines of a repeated block
SEEN = 120  # only this many last lines are searched

Line = tuple[str, ...]
Structure = tuple[Line, int]
"""The structure of a line or a statement, and the index of its first line."""


@lru_cache(4096)
def kinds(line: str) -> Line:
    """Return the structure of a line: its leading blanks and the kinds of its words."""
    words = [line[: len(line) - len(line.lstrip())]]
    for word in WORDS.finditer(line):
        own = word.lastgroup == "other" or keyword.iskeyword(word[0])
        words.append(word[0] if own else word.lastgroup)
    return tuple(words)


def structures(lines: Sequence[str]) -> list[Structure]:
    """Return the structures of the last lines, each with the index of its line."""
    first = max(0, len(lines) - SEEN)
    return [(kinds(line), place) for place, line in enumerate(lines[first:], first)]


def repeated(lines: Sequence[Line]) -> tuple[int, int]:
    """Find the shortest block of structures that the list ends with at least twice in a row. Returns (size, times).
    size: the number of lines or statements in the block. times: how often the block occurs before its last occurrence.
    Returns (0, 0) if no block is repeated. A block of blank lines is ignored."""
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
