"""Ropes that depend on the length of the text: rows of any pass are read as ``generate`` reads them."""

import copy
from functools import cache

import pytest
import torch

from engine.methods.hidden_transfer.part import TransferMaps
from engine.methods.shared.prompt_tokens_part import PromptTokens
from engine.model.by_length import ByLengthModel
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import steps_of, text_of, usual
from tests.engine.tiny import generated
from tests.sweep.comparing import random_module
from tests.sweep.tiny_configs import config_of

NAMES = ("phi3, longrope", "phimoe, longrope", "llama, longrope", "llama, dynamic")
EDGE = 20  # the length at which all of them change
NEW = 12
PROBES = {"ppd": PromptTokens.tiny, "hidden_transfer": TransferMaps.tiny}


@pytest.fixture(scope="module", params=NAMES)
def pair(request):
    """Return (the module, the same weights in the engine)."""
    module = random_module(config_of(request.param))
    return module, language_model(copy.deepcopy(module), None, request.param, lean=False)


def prompt_of(length: int) -> list[int]:
    return [(7 * place * place + 3 * place) % 89 + 1 for place in range(length)]


@cache
def expected(module, length: int) -> list[int]:
    return generated(copy.deepcopy(module), prompt_of(length), NEW)


def written(model, key: str, prompt: list[int]) -> list[int]:
    chosen = {"budget": 8} if key == "dyspec" else {}
    probes = {role: made(model) for role, made in PROBES.items() if role == key}
    models = Models(model, {"draft": model} | probes)
    return text_of(steps_of(models, usual(key, models, **chosen), prompt, NEW))


@pytest.mark.parametrize("key", ["none", "prompt_lookup", "dyspec"])
@pytest.mark.parametrize("length", [EDGE - NEW, EDGE - 1, EDGE, EDGE + 6])
def test_texts_are_those_of_generate(pair, key, length):
    module, model = pair
    assert isinstance(model, ByLengthModel)
    assert written(model, key, prompt_of(length)) == expected(module, length)


@pytest.mark.parametrize("key", PROBES)
def test_probe_rows_stand_on_either_side(pair, key):
    module, model = pair
    assert written(model, key, prompt_of(EDGE - 2)) == expected(module, EDGE - 2)


def test_texts_that_share_a_model_do_not_disturb_each_other(pair):
    """Some ropes remember the longest text, so each row computes them anew."""
    module, model = pair
    for length in (EDGE + 6, EDGE - 4):
        assert written(model, "none", prompt_of(length)) == expected(module, length)


def test_rows_fed_in_parts_over_the_edge(pair):
    """Rows on both sides of the edge, fed in two parts, have the same logits, features and commit as in one pass."""
    _, model = pair
    prefix, rows, parents = prompt_of(EDGE - 2), [3, 8, 11, 30, 5], [-1, 0, 0, 1, 3]
    once, parts = (model.session(size, features=(1,)) for size in (64, 4))
    once.prefill(prefix)
    parts.prefill(prefix)
    apart = [parts.feed(rows[:2], parents[:2]), parts.feed(rows[2:], parents[2:])]
    for found, expected in zip(zip(*apart, strict=True), once.feed(rows, parents), strict=True):
        torch.testing.assert_close(torch.cat(found), expected, atol=2e-5, rtol=1e-4)
    for session in (once, parts):
        session.commit([0, 1, 3])
    found, expected = (session.feed([4], [-1])[0] for session in (parts, once))
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


def test_a_long_prompt_is_read_in_parts_as_a_whole(pair, monkeypatch):
    module, model = pair
    monkeypatch.setattr("engine.model.session.Session.prefill_rows", 7)
    assert written(model, "none", prompt_of(EDGE + 6)) == expected(module, EDGE + 6)
