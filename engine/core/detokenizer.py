"""Token ids as text, one token after another.

The text that a token adds depends on the text before it: Llama 2 drops the space that a text begins with, "##ing" joins
the word before it, and a character may be split between tokens. So each token is decoded together with a token before
it, and its piece is the text that it adds. Joined together, the pieces of a text's tokens are the text.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple
from weakref import WeakKeyDictionary, proxy

from transformers import PreTrainedTokenizerFast

LOST = "\ufffd"  # stands in a decoded text for bytes that are no character
BYTE_NAME = re.compile("<0x([0-9A-Fa-f]{2})>")
MOST_TRIED = 10_000  # the most tokens among which a plain one is searched
MOST_KNOWN = 1 << 17
"""The most pieces that are remembered for one tokenizer: some tens of megabytes."""

ESCAPES, EACH_BYTE = "draftscope_escape", "draftscope_each_byte"
"""Names of error handlers for bytes that form no character. ESCAPES writes ⟨hex⟩ for each byte. EACH_BYTE writes U+FFFD
for each byte, while the standard handler may write one U+FFFD for several bytes."""

ONE_BY_ONE = {"ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "WordPiece"}
"""Decoders that change each token, or each token's bytes, without regard to other tokens."""


class Added(NamedTuple):
    """The result of appending a token to a text.

    piece: the text that the token adds; a character belongs to the token that completes it.
    face: the piece, followed by escapes such as ⟨e2⟩ for bytes of the token that are no whole character yet.
    place: the end of the longer text.
    """

    piece: str
    face: str
    place: Place


class Place:
    """The end of a text: everything that the next token's piece depends on."""

    __slots__ = ("_before", "_detokenizer", "_known", "unfinished")

    def __init__(self, detokenizer: Detokenizer, before: int | None, unfinished: bytes) -> None:
        """before: a token that stands for the text before this place; None at the start of a text. unfinished: the
        bytes of a character that the next token may complete."""
        self._detokenizer, self._before = detokenizer, before
        self._known: dict[int, Added] = {}
        self.unfinished = unfinished

    def add(self, token: int) -> Added:
        """The result of appending ``token`` at this place."""
        added = self._known.get(token)
        if added is None:
            added = self._detokenizer.added(self._before, self.unfinished, token)
            self._known[token] = added
        return added

    def pieces(self, tokens: Iterable[int]) -> tuple[list[str], Place]:
        """The pieces of several tokens, one after another, and the end of the longer text."""
        place, pieces = self, []
        for token in tokens:
            piece, _, place = place.add(token)
            pieces.append(piece)
        return pieces, place

    @property
    def rest(self) -> str:
        """The characters shown for the unfinished character if the text ends here."""
        return self._detokenizer.lost(self.unfinished)


class Detokenizer:
    """The pieces of one tokenizer's tokens. start: the place at the start of a text. within: a place inside a text,
    whatever stands before it."""

    def __init__(self, tokenizer) -> None:
        """tokenizer: a transformers tokenizer; only a weak reference to it is held."""
        self._tokenizer = proxy(tokenizer)
        decoder = _decoder(tokenizer)
        bytewise = any(step["type"] == "ByteFallback" for step in decoder or ())
        self._errors = EACH_BYTE if bytewise else "replace"
        self._anchor = self._plain_token()
        self._local = self._anchor is not None and decoder is not None and _is_local(decoder)
        self._begin()

    def _begin(self) -> None:
        self._places: dict[tuple[int | None, bytes], Place] = {}
        self._count = 0
        self.start = self._place(None, b"")
        self.within = self._place(self._anchor, b"")

    def _place(self, before: int | None, unfinished: bytes) -> Place:
        key = (before, unfinished)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = Place(self, before, unfinished)
        return place

    def added(self, before: int | None, unfinished: bytes, token: int) -> Added:
        """The result of appending ``token`` at the place (before, unfinished), computed without the places' caches."""
        self._count += 1
        if self._count > MOST_KNOWN:
            self._begin()
        piece = self._behind(before, token)
        raw = self._raw(token) if LOST in piece else None
        if raw is None:
            place = self._place(self._following(before, token), b"")
            piece = self.lost(unfinished) + piece
            return Added(piece, piece, place)
        data = unfinished + raw
        piece, used = codecs.utf_8_decode(data, self._errors, False)
        left = data[used:]
        own = left[-len(raw) :]
        return Added(piece, piece + escaped(own), self._place(self._anchor, left))

    def lost(self, unfinished: bytes) -> str:
        """The characters shown for bytes of a character that no later token completes."""
        return unfinished.decode("utf-8", self._errors)

    def face(self, token: int) -> str:
        """The token as it looks inside a text, with escapes such as ⟨e2⟩ for bytes that are no whole character."""
        piece, face, _ = self.within.add(token)
        raw = self._raw(token) if LOST in piece else None
        return face if raw is None else escaped(raw)

    def spelled(self, token: int) -> bytes:
        """The bytes that the token adds inside a text."""
        piece = self._behind(self._anchor, token)
        raw = self._raw(token) if LOST in piece else None
        return piece.encode() if raw is None else raw

    def _behind(self, before: int | None, token: int) -> str:
        """The text that ``token`` adds if it is decoded directly after the token ``before``."""
        if before is None:
            return self._decoded(token)
        alone, longer = self._decoded(before), self._decoded(before, token)
        same = alone if longer.startswith(alone) else os.path.commonprefix([alone, longer])
        return longer[len(same) :]

    def _following(self, before: int | None, token: int) -> int | None:
        """The token that may stand for the whole text up to and including ``token`` when the next token is decoded."""
        if self._local or self._named_byte(token) is not None:
            return self._anchor
        return token if self._decoded(token) else before

    def _decoded(self, *tokens: int) -> str:
        return self._tokenizer.decode(
            list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def _plain_token(self) -> int | None:
        """A token that consists of letters; after it, every token is decoded as inside a text. None if there is no
        usable token."""
        special, usable = set(self._tokenizer.all_special_ids), None
        for token in range(min(len(self._tokenizer), MOST_TRIED)):
            text = self._decoded(token).strip()
            if not text or LOST in text or token in special or self._named_byte(token) is not None:
                continue
            if text.isascii() and text.isalpha():
                return token
            usable = token if usable is None else usable
        return usable

    def _named_byte(self, token: int) -> bytes | None:
        """The byte of a token whose name spells a byte, as in <0xE2>; None for other tokens. Decoders join such
        tokens."""
        name = self._tokenizer.convert_ids_to_tokens(token)
        match = BYTE_NAME.fullmatch(name) if isinstance(name, str) else None
        return bytes.fromhex(match[1]) if match else None

    def _raw(self, token: int) -> bytes | None:
        """The token's bytes; None if the tokenizer does not store them."""
        named = self._named_byte(token)
        if named is not None:
            return named
        name = self._tokenizer.convert_ids_to_tokens(token)
        if not isinstance(name, str) or not set(name) <= _byte_letters().keys():
            return None
        return bytes(_byte_letters()[letter] for letter in name)


_KNOWN: WeakKeyDictionary[object, Detokenizer] = WeakKeyDictionary()


def detokenizer(tokenizer) -> Detokenizer:
    """The tokenizer's ``Detokenizer``, which all runs share because they meet the same tokens."""
    own = _KNOWN.get(tokenizer)
    if own is None:
        own = _KNOWN[tokenizer] = Detokenizer(tokenizer)
    return own


def _decoder(tokenizer) -> list[dict] | None:
    """The steps of a tokenizer's decoder, in order; None where the tokenizer decodes in another way, or where they
    cannot be read."""
    cls, usual = type(tokenizer), PreTrainedTokenizerFast
    if not issubclass(cls, usual) or cls.decode != usual.decode or cls._decode != usual._decode:
        return None
    if tokenizer.backend_tokenizer.decoder is None:
        return []
    try:
        content = json.loads(tokenizer.backend_tokenizer.decoder.__getstate__())
    except Exception:  # noqa: BLE001  the library names no kind; a decoder written in Python cannot be read
        return None
    return content["decoders"] if content["type"] == "Sequence" else [content]


def _is_local(decoder: list[dict]) -> bool:
    """Whether a token's piece depends only on whether any text stands before it, and not on which text."""
    joined = False
    for step in decoder:
        kind = step["type"]
        if kind == "Strip":
            local = step["stop"] == 0 and step["start"] <= 1
        else:
            local = kind in ONE_BY_ONE and not joined
        if not local:
            return False
        joined = joined or kind in ("Fuse", "ByteLevel")
    return True


@cache
def _byte_letters() -> dict[str, int]:
    """The byte for each printable character by which byte-level BPE writes a byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    table = {chr(byte): byte for byte in plain}
    return table | {chr(256 + offset): byte for offset, byte in enumerate(others)}


def escaped(raw: bytes) -> str:
    """The bytes as text: whole characters as they are, every other byte as ⟨hex⟩."""
    return raw.decode("utf-8", ESCAPES)


def _escape(error: UnicodeDecodeError) -> tuple[str, int]:
    bad = error.object[error.start : error.end]
    return "".join(f"⟨{byte:02x}⟩" for byte in bad), error.end


def _each_byte(error: UnicodeDecodeError) -> tuple[str, int]:
    return LOST * (error.end - error.start), error.end


codecs.register_error(ESCAPES, _escape)
codecs.register_error(EACH_BYTE, _each_byte)
