"""The ends of a text: end tokens, and strings that end the text once it contains one of them.

A draft may run past such an end. Everything after the end is dropped, so that the text is the one that
plain decoding would have written: its last token is the one that completes the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.core.detokenizer import Place, detokenizer
from engine.errors import UserError

MOST_STRINGS, MOST_CHARACTERS = 8, 200
TYPED = {"n": "\n", "t": "\t", "\\": "\\"}


def typed(line: str) -> str:
    """A stop string that a person typed on one line, with its escapes replaced: \\n is a line break, \\t a tab and \\\\
    a backslash. A backslash before any other character stays."""
    return re.sub(r"\\([nt\\])", lambda match: TYPED[match[1]], line)


def check_stop_strings(strings: Sequence[str]) -> None:
    """Raises UserError for too many, too long or empty strings."""
    if len(strings) > MOST_STRINGS:
        raise UserError(f"At most {MOST_STRINGS} stop strings can be given.")
    for string in strings:
        if not isinstance(string, str) or not 0 < len(string) <= MOST_CHARACTERS:
            raise UserError(f"A stop string has 1 to {MOST_CHARACTERS} characters.")
        try:
            string.encode("utf-8")
        except UnicodeError:
            raise UserError("A stop string is no valid Unicode text.") from None


class StopStrings:
    """Strings that end a text. tokenizer: a transformers tokenizer."""

    def __init__(self, tokenizer, strings: Sequence[str]) -> None:
        """Raises UserError for strings that ``check_stop_strings`` refuses."""
        check_stop_strings(strings)
        self._tokenizer, self._strings = tokenizer, tuple(strings)
        self.longest = max(map(len, strings), default=0)

    def __bool__(self) -> bool:
        return bool(self._strings)

    def behind(self, prompt: Sequence[int]) -> Place:
        """The place after the prompt, where the text begins."""
        return detokenizer(self._tokenizer).start.pieces(prompt)[1]

    def occur_in(self, text: str) -> bool:
        """Whether the text contains one of the strings."""
        return any(string in text for string in self._strings)


@dataclass(frozen=True)
class Written:
    """The end of the text after a prompt, as needed for finding stop strings.

    end: the place where the next token is added. tail: the last characters of the text, among which a stop string may
    begin.
    ended: whether the text that the last token added completes a stop string.
    """

    strings: StopStrings
    end: Place
    tail: str = ""
    ended: bool = False

    def after(self, token: int) -> Written:
        """The end of the text after one more token."""
        piece, _, end = self.end.add(token)
        text = self.tail + piece
        tail = text[max(0, len(text) - self.strings.longest + 1) :]
        return Written(self.strings, end, tail, self.strings.occur_in(text))


class Ending:
    """The ends of one text. tokens: ids that end it. strings: stop strings, or None. prompt: the tokens before the
    text."""

    def __init__(
        self, tokens: frozenset[int], strings: StopStrings | None = None, prompt: Sequence[int] = ()
    ) -> None:
        self.tokens = tokens
        self._written = Written(strings, strings.behind(prompt)) if strings else None

    @property
    def plain(self) -> bool:
        """Whether only tokens can end the text."""
        return self._written is None

    def first(self, tokens: Sequence[int]) -> int | None:
        """The number of tokens that the text still takes from ``tokens``, which follow its last token: all up to and
        including the first that ends the text. None if none of them ends it."""
        written = self._written
        for count, token in enumerate(tokens, start=1):
            written = written and written.after(token)
            if token in self.tokens or (written is not None and written.ended):
                return count
        return None

    def commit(self, tokens: Sequence[int]) -> None:
        """Append these tokens to the text."""
        for token in tokens:
            self._written = self._written and self._written.after(token)

    def why(self, last: int) -> Literal["eos", "stop"] | None:
        """The reason why the text ends after its last token ``last``; None if the text goes on."""
        if last in self.tokens:
            return "eos"
        ended = self._written is not None and self._written.ended
        return "stop" if ended else None
