"""Token ids as text a person can read, one at a time.

A piece is one token decoded by itself. Bytes that make no whole character are shown as escapes
such as ⟨e2⟩.
"""

import codecs
from collections.abc import Iterable, Sequence
from functools import cached_property
from weakref import WeakKeyDictionary

_KNOWN: WeakKeyDictionary[object, dict[int, str]] = WeakKeyDictionary()
"""Pieces by tokenizer, shared by all runs: decoding one token costs a good part of recording a step."""


class Pieces:
    """Piece of each token id, decoded once in the life of its tokenizer."""

    def __init__(self, tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known = _KNOWN.setdefault(tokenizer, {})

    def __getitem__(self, token: int) -> str:
        piece = self._known.get(token)
        if piece is None:
            piece = self._known[token] = self._decode(token)
        return piece

    def all(self, tokens: Iterable[int]) -> list[str]:
        return [self[token] for token in tokens]

    def text(self, tokens: Sequence[int]) -> str:
        """All tokens decoded at once."""
        return self._text(list(tokens))

    def _text(self, tokens: int | list[int]) -> str:
        return self._tokenizer.decode(
            tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def _decode(self, token: int) -> str:
        text = self._text(token)
        if "\ufffd" not in text:
            return text
        stored = self._tokenizer.convert_ids_to_tokens(token)
        if not isinstance(stored, str):
            return text
        if stored.startswith("<0x") and stored.endswith(">"):
            return escaped(bytes([int(stored[3:-1], 16)]))
        if all(character in self._bytes for character in stored):
            return escaped(bytes(self._bytes[character] for character in stored))
        return text

    @cached_property
    def _bytes(self) -> dict[str, int]:
        """Byte-level BPE writes each byte as a printable character; this reads it back."""
        plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        others = [byte for byte in range(256) if byte not in set(plain)]
        table = {chr(byte): byte for byte in plain}
        return table | {chr(256 + offset): byte for offset, byte in enumerate(others)}


def escaped(raw: bytes) -> str:
    """Whole characters as they are, every other byte as ⟨hex⟩."""
    return raw.decode("utf-8", errors="draftscope_escape")


def _escape(error: UnicodeDecodeError) -> tuple[str, int]:
    bad = error.object[error.start : error.end]
    return "".join(f"⟨{byte:02x}⟩" for byte in bad), error.end


codecs.register_error("draftscope_escape", _escape)
