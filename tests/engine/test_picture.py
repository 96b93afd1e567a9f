"""Tokens that are patches of a picture: the model's config, the trace, and what is refused."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine.errors import UserError
from engine.model.picture import FIELD, picture_of
from engine.trace import read_trace
from engine.training.pictures.digits import LEVELS, PICTURE, SIDE, picture_tokenizer, tokens_of
from presets import trace_text

GIVEN = PICTURE.to_dict()


def test_tokens_hold_every_pixel():
    picture = np.random.default_rng(0).integers(0, LEVELS, (1, SIDE, SIDE))
    tokens, places, patch = tokens_of(picture)[0], SIDE // PICTURE.patch, PICTURE.patch
    again = np.zeros((SIDE, SIDE), dtype=int)
    for at, token in enumerate(tokens):
        row, column = divmod(at, places)
        pixels = np.reshape(PICTURE.pixels(int(token)), (patch, patch))
        again[row * patch : (row + 1) * patch, column * patch : (column + 1) * patch] = pixels
    assert (again == picture[0]).all()
    with pytest.raises(ValueError):
        PICTURE.pixels(PICTURE.first + PICTURE.count)


def test_the_text_of_a_patch_is_its_shades_and_unknown_words_ask_for_any_digit():
    tokenizer = picture_tokenizer()
    assert tokenizer.decode([PICTURE.first + 1]) == "···░"
    assert tokenizer("7 ···░ hello").input_ids[1:] == [1, tokenizer.unk_token_id]


def test_a_strangers_config_that_makes_no_picture_is_left_aside():
    found = lambda entry: picture_of(SimpleNamespace(**{FIELD: entry}), 268)
    assert found(GIVEN) == PICTURE and found(None) is None and found([1]) is None
    odd = [
        ("width", 15),
        ("width", 0),
        ("width", "16"),
        ("height", 1000),
        ("patch", 3),
        ("levels", 1),
    ]
    odd += [("levels", True), ("first", -1), ("first", 200)]  # patches beyond the vocabulary
    for change in (*({name: value} for name, value in odd), {"patch": 8, "levels": 256}):
        assert found(GIVEN | change) is None, change


def test_a_trace_says_how_its_tokens_are_pixels():
    text = trace_text("picture")
    assert read_trace(text).run["picture"] == GIVEN
    lines = text.splitlines()
    for bad in ({"patch": 0}, {"width": 1e9}, {"levels": "4"}):
        run = json.loads(lines[0])
        run["picture"] |= bad
        with pytest.raises(UserError, match="does not fit the schema"):
            read_trace("\n".join([json.dumps(run), *lines[1:]]))
    assert "picture" not in read_trace(trace_text("jacobi")).run
    assert replace(PICTURE, patch=1).places == SIDE * SIDE
