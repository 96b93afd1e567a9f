"""The ends of a text: tokens, and strings that the text may come to contain.

A draft may run on past such an end. Everything after the end is dropped, so that the text is the one that
plain decoding would have written: its last token is the one that completes the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.errors import UserError

MOST_STRINGS, MOST_CHARACTERS = 8, 200
MARGIN = 8  # extra tokens read before the longest stop string: some decode differently at an edge


class StopStrings:
    """Looks for strings in the text written so far. tokenizer: a transformers tokenizer."""

    def __init__(self, tokenizer, strings: Sequence[str]) -> None:
        """Raises UserError for too many, too long or empty strings."""
        if len(strings) > MOST_STRINGS:
            raise UserError(f"At most {MOST_STRINGS} stop strings can be given.")
        for one in strings:
            if not isinstance(one, str) or not 0 < len(one) <= MOST_CHARACTERS:
                raise UserError(f"A stop string has 1 to {MOST_CHARACTERS} characters.")
            try:
                one.encode("utf-8")
            except UnicodeError:
                raise UserError("A stop string is no valid Unicode text.") from None
        self._tokenizer, self._strings = tokenizer, tuple(strings)
        longest = max((len(one.encode("utf-8")) for one in strings), default=0)
        self._window = longest + MARGIN  # a token holds at least one byte

    def __bool__(self) -> bool:
        return bool(self._strings)

    def ended(self, written: Sequence[int]) -> bool:
        """Whether the last of ``written``, the tokens after the prompt, contain one of the strings."""
        text = self._tokenizer.decode(
            list(written[-self._window :]),
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        return any(one in text for one in self._strings)


class Ending:
    """The ends of one text. tokens: ids that end it. strings: None if there are none."""

    def __init__(self, tokens: frozenset[int], strings: StopStrings | None = None) -> None:
        self.tokens = tokens
        self._strings = strings or None
        self._written: list[int] = []

    @property
    def plain(self) -> bool:
        """Whether only tokens can end the text."""
        return self._strings is None

    def first(self, tokens: Sequence[int]) -> int | None:
        """How many of these tokens, next in the text, are kept if one of them ends it; else None."""
        written = list(self._written)
        for count, token in enumerate(tokens, start=1):
            written.append(token)
            if token in self.tokens or (self._strings is not None and self._strings.ended(written)):
                return count
        return None

    def commit(self, tokens: Sequence[int]) -> None:
        """These tokens are part of the text now."""
        if self._strings is not None:
            self._written += tokens

    def why(self, last: int) -> Literal["eos", "stop"] | None:
        """What ended the text, given its last token, or None if it goes on."""
        if last in self.tokens:
            return "eos"
        ended = self._strings is not None and self._strings.ended(self._written)
        return "stop" if ended else None
