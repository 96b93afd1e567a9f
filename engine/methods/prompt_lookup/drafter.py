"""Copy the tokens that followed the last occurrence of the text's final tokens.

Prompt lookup decoding (Saxena, 2023): the longest n-gram that ends the context is looked up earlier
in the context; the tokens that followed it there are the draft. No model, no training.
"""

import sys
from collections.abc import Sequence

from engine.core.drafter import Drafter
from engine.core.exhibits import Token, Words
from engine.core.options import Option
from engine.core.tree import DraftTree


class PromptLookupDrafter(Drafter):
    key = "prompt_lookup"
    title = "Prompt lookup"
    family = "retrieval"
    summary = "Copies what followed the longest matching run of tokens earlier in the text."
    options = (
        # 12 and the root are 13 rows, a size for which passes on a CPU have a graph (engine.fast.cpu.fixed)
        Option("length", "int", 12, "Tokens copied in each step.", 1, 64),
        Option("max_ngram", "int", 5, "Longest run of tokens to look for.", 1, 16),
        Option("min_ngram", "int", 1, "Shortest run that counts as a match.", 1, 16, advanced=True),
    )

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"})

    trial = {"length": 2}

    def begin(self, start):
        super().begin(start)
        shortest = min(self.settings["min_ngram"], self.settings["max_ngram"])
        self.index = NgramIndex(shortest, self.settings["max_ngram"])

    def propose(self, context, max_depth):
        tree = DraftTree()
        self.index.read(context)
        match = self.index.latest(context)
        if match is None:
            return tree
        start, length = match
        end = start + min(self.settings["length"], max_depth)
        tree.chain(context[start:end], f"context {start}")
        matched = [Token(token) for token in context[start - length : start]]
        line = ["The last tokens ", *matched, f" also stand before token {start} of the text."]
        tree.exhibits.append(Words(title="Match", lines=[line]))
        return tree


class NgramIndex:
    """Where each n-gram was last continued. Reading a token adds longest - shortest + 1 entries."""

    def __init__(self, shortest: int, longest: int) -> None:
        self._sizes = range(longest, shortest - 1, -1)
        self._continued_at: dict[tuple[int, ...], int] = {}
        self._read = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the table and its keys; the numbers in the keys belong to the text."""
        keys = sum(map(sys.getsizeof, self._continued_at))
        return sys.getsizeof(self._continued_at) + keys

    def read(self, context: Sequence[int]) -> None:
        """Index the tokens that came since the last call."""
        for position in range(max(self._read, 1), len(context)):
            for size in self._sizes:
                if size <= position:
                    self._continued_at[tuple(context[position - size : position])] = position
        self._read = len(context)

    def latest(self, context: Sequence[int]) -> tuple[int, int] | None:
        """(position of the continuation, n) of the longest n-gram ending the context."""
        for size in self._sizes:
            if size < len(context):
                position = self._continued_at.get(tuple(context[-size:]))
                if position is not None:
                    return position, size
        return None
