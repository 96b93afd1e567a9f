"""Tokens become text one after another, and the text is the whole decoding, for every kind of tokenizer."""

import gc
import weakref
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.detokenizer import detokenizer
from engine.core.ending import Ending, StopStrings
from tests.engine.tiny_tokenizers import MAKERS, byte_level, decoded, llama, word_piece

NAMED_BYTES = range(3, 259)
"""In the Llama-like vocabulary: the tokens whose names are bytes."""


def ids(name: str):
    """Return texts as token ids. If one byte in a run of named bytes is stray, tokenizers also lose whole characters of
    the run; so each run here is whole characters, or one stray byte."""
    tokenizer = MAKERS[name]()
    tokens = range(len(tokenizer))
    if name != "llama":
        return st.lists(st.sampled_from(tokens), max_size=12)
    plain = st.sampled_from([one for one in tokens if one not in NAMED_BYTES]).map(
        lambda one: [one]
    )
    text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3)
    whole = text.map(lambda text: [NAMED_BYTES[byte] for byte in text.encode()])
    stray = st.integers(0x80, 0xFF).map(lambda byte: [NAMED_BYTES[byte]])
    behind = st.tuples(plain, whole | stray | plain).map(lambda pair: pair[0] + pair[1])
    return st.lists(behind, max_size=6).map(lambda parts: [*chain(*parts)])


@pytest.mark.parametrize("name", MAKERS)
@given(data=st.data())
def test_the_pieces_joined_are_the_whole_decoding_and_each_text_is_a_beginning_of_it(name, data):
    tokens = data.draw(ids(name))
    tokenizer = MAKERS[name]()
    whole = decoded(tokenizer, tokens)
    place, text = detokenizer(tokenizer).start, ""
    for token in tokens:
        piece, face, place = place.add(token)
        assert face == piece or face.startswith(piece) and face.endswith("⟩")
        text += piece
        assert whole.startswith(text)
    assert text + place.rest == whole


def written(tokenizer, names: list[str], behind: list[str]) -> list[tuple[str, str]]:
    """Return (piece, face) of these tokens behind other tokens."""
    known = tokenizer.get_vocab()
    _, place = detokenizer(tokenizer).start.pieces([known[name] for name in behind])
    found = []
    for name in names:
        piece, face, place = place.add(known[name])
        found.append((piece, face))
    return found


def plain(*pieces: str) -> list[tuple[str, str]]:
    return [(piece, piece) for piece in pieces]


def test_no_space_is_lost_or_glued():
    assert written(llama(), ["▁fox", "s", "▁ran"], ["<s>"]) == plain(" fox", "s", " ran")
    assert written(llama(), ["▁fox"], []) == plain("fox")
    assert written(word_piece(), ["ran", "##ing", "."], ["the"]) == plain(" ran", "ing", ".")


def test_a_character_belongs_to_the_token_that_completes_it():
    named = ["<0xF0>", "<0x9F>", "<0x8C>", "<0xB3>", "<0xE2>", "▁fox"]
    faces = ["⟨f0⟩", "⟨9f⟩", "⟨8c⟩", "🌳", "⟨e2⟩", "\ufffd fox"]
    pieces = ["", "", "", "🌳", "", "\ufffd fox"]
    assert written(llama(), named, ["the"]) == list(zip(pieces, faces, strict=True))
    spelled = ["ðŁ", "Į³ð", "ŁĮ", "³", "ï¿½", "ðŁ", "the"]
    faces = ["⟨f0⟩⟨9f⟩", "🌳⟨f0⟩", "⟨9f⟩⟨8c⟩", "🌳", "\ufffd", "⟨f0⟩⟨9f⟩", "\ufffdthe"]
    pieces = ["", "🌳", "", "🌳", "\ufffd", "", "\ufffdthe"]
    assert written(byte_level(), spelled, ["the"]) == list(zip(pieces, faces, strict=True))


def test_a_token_by_itself_is_shown_as_within_a_text():
    known, shown = llama().get_vocab(), detokenizer(llama()).face
    assert [shown(known[name]) for name in ("▁fox", "fox", "<0xB3>")] == [" fox", "fox", "⟨b3⟩"]
    known, shown = word_piece().get_vocab(), detokenizer(word_piece()).face
    assert [shown(known[name]) for name in ("fox", "##ing")] == [" fox", "ing"]


@pytest.mark.parametrize("name", ["byte_level", "word_ends"])
def test_what_is_remembered_is_bounded(name, monkeypatch):
    monkeypatch.setattr("engine.core.detokenizer.MOST_KNOWN", 20)
    tokenizer = MAKERS[name].__wrapped__()
    tokens = list(range(len(tokenizer))) * 2
    words = detokenizer(tokenizer)
    pieces, place = words.start.pieces(tokens)
    assert "".join(pieces) + place.rest == decoded(tokenizer, tokens)
    assert sum(len(place._known) for place in words._places.values()) <= 20


def test_a_tokenizer_that_nobody_uses_is_forgotten():
    tokenizer = llama.__wrapped__()
    detokenizer(tokenizer).start.pieces([260, 261])
    gone = weakref.ref(tokenizer)
    del tokenizer
    gc.collect()
    assert gone() is None


# ---- Stop strings -------------------------------------------------------------------------------


def stopped_after(tokenizer, strings, prompt, names) -> int | None:
    known = tokenizer.get_vocab()
    ending = Ending(frozenset(), StopStrings(tokenizer, strings), [known[name] for name in prompt])
    tokens = [known[name] for name in names]
    at_once = ending.first(tokens)
    for count, token in enumerate(tokens, start=1):
        ending.commit([token])
        if ending.why(token) == "stop":
            assert count == at_once, "in one step or in several"
            return count
    assert at_once is None
    return None


NAMES = ["▁fox", "s", "▁ran", "<0xE2>", "<0x82>", "<0xAC>", "."]
STOPS = {
    " fox": 1,
    "fox": 1,
    " ": 1,
    "xs r": 3,
    "€": 6,
    "n€.": 7,
    "the fox": None,  # it begins in the prompt
    "\ufffd": None,
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_string_is_found_with_the_token_that_completes_it(stop):
    assert stopped_after(llama(), ["never", stop], ["<s>", "▁the"], NAMES) == STOPS[stop]


def test_a_stop_string_of_separate_words():
    assert stopped_after(word_piece(), ["x ran"], ["the"], ["fox", "ran", "##ing"]) == 2
    assert stopped_after(word_piece(), [" ran"], ["the"], ["ran", "fox"]) == 1
    assert stopped_after(byte_level(), ["🌳"], ["the"], ["ðŁ", "Į³ð", "ŁĮ", "³"]) == 2
