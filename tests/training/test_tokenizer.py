"""Byte-level BPE: nothing is lost, each digit is a token, and the special tokens have their places."""

from __future__ import annotations

import pytest

from engine.training.tokenizer import EOS, MASK, load_tokenizer

ODD = [
    "plain text, with 'quotes' and it's",
    "  leading and trailing   ",
    "tabs\tand\r\nline ends\n\n\n",
    "ünïcödé Ω 漢字 العربية हिन्दी",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u200b\u202e\ufeff",
    "\x00\x01\x7f\x80 control",
    "١٢٣ ² ½ 12345",
    "",
]


@pytest.mark.parametrize("text", ODD)
def test_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_digits_are_single(tokenizer):
    assert [t for t in tokenizer.tokenize("a 120 45") if t.isdigit()] == list("12045")


def test_special_tokens(tokenizer, tmp_path):
    assert tokenizer.eos_token == EOS and tokenizer.mask_token == MASK
    assert tokenizer(f"a{EOS}").input_ids[-1] == tokenizer.eos_token_id
    tokenizer.save_pretrained(tmp_path)
    again = load_tokenizer(tmp_path)
    assert again("Copy: a b\nOutput: 1").input_ids == tokenizer("Copy: a b\nOutput: 1").input_ids
