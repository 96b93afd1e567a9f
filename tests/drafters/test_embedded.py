"""Drafters without parts on the embedded target: the text of plain decoding, token by token."""

from functools import cache

import pytest

from engine.methods import drafters
from engine.parts.loading import load_models
from presets import family, prompts
from tests.drafters.writing import steps_of, text_of

FREE = [cls.key for cls in drafters().values() if not cls.needs and cls.loop == "speculative"]


@cache
def plain():
    models = load_models(family(), {})
    prompt = models.target.tokenizer(prompts("edit")[1]["prompt"])["input_ids"]
    return models, prompt, text_of(steps_of(models, "none", prompt, 32))


@pytest.mark.parametrize("key", FREE)
def test_greedy_text_is_that_of_plain_decoding(key):
    models, prompt, expected = plain()
    assert text_of(steps_of(models, key, prompt, 32)) == expected
