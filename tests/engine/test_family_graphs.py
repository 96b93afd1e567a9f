"""The texts of the embedded family with the graphs that small models have by default are those of transformers' own loop."""

import pytest

from presets import KINDS
from tests.engine.test_family import EXACT, check_greedy
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test

PROMPTS = 20
COMPILED = ["chain", "dflash", "eagle", "kangaroo"]
"""A drafter of each kind of compiled draft."""


@pytest.mark.parametrize("key", COMPILED)
def test_greedy_is_plain_decoding(key):
    check_greedy(key, "story", 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", EXACT)
def test_greedy_is_plain_decoding_after_any_prompt(key, kind):
    for index in range(PROMPTS):
        check_greedy(key, kind, index)
