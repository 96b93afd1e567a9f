"""The settings that come from the controls and from addresses."""

import json

import pytest

from app.controls import RANGES, request
from app.example_menu import preset_menu
from app.link import read
from app.menu import drafter_menu, offer, plain_pair
from app.settings import LIMITS
from engine.errors import UserError
from engine.run import RunRequest
from presets.fetched import missing_target

CHAIN = plain_pair("chain")
GOOD = {"prompt": "Once", "pair": json.dumps(CHAIN)}


def wish(**query):
    return read(query, preset_menu(), offer())


def test_defaults():
    asked = request(GOOD)
    assert isinstance(asked, RunRequest)
    assert (asked.drafter, asked.options, asked.verifier) == ("chain", {}, None)
    assert asked.temperature == 0
    assert asked.max_new_tokens == RANGES["max_new_tokens"].default


def test_a_pair_is_read_as_it_is_set():
    asked = request({**GOOD, "pair": json.dumps({**CHAIN, "options": {"length": 3}})})
    assert (asked.drafter, asked.options) == ("chain", {"length": 3})
    asked = request({**GOOD, "pair": json.dumps({"drafter": "chain", "verifier": "rejection"})})
    assert (asked.options, asked.verifier, asked.rule_options) == ({}, "rejection", {})


@pytest.mark.parametrize(
    "bad",
    [
        {"prompt": ""},
        {"prompt": " \n"},
        {"prompt": None},
        {"prompt": ["a"]},
        {"prompt": "x" * (LIMITS.prompt_characters + 1)},
        {"pair": None},
        {"pair": {"drafter": "chain"}},
        {"pair": "[]"},
        {"pair": "{"},
        {"pair": "[" * 100_000},
        {"pair": '{"drafter": {"a": 1}}'},
        {"pair": '{"drafter": "chain", "options": 3}'},
        {"pair": '{"drafter": "chain", "rule_options": [1]}'},
        {"pair": '{"drafter": "chain", "verifier": 3}'},
        {"pair": '{"drafter": "nobody", "rule_options": {"a": 1}}'},
        {"temperature": -0.1},
        {"temperature": "warm"},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": 1.5},
        {"top_p": 0},
        {"seed": -1},
        {"max_new_tokens": 0},
        {"max_new_tokens": LIMITS.new_tokens + 1},
    ],
)
def test_nonsense_is_told_in_one_sentence(bad):
    with pytest.raises(UserError) as told:
        request({**GOOD, **bad})
    assert str(told.value).endswith(".")
    assert "\n" not in str(told.value)


def test_bounds_are_written_out():
    with pytest.raises(UserError, match="from 0 to 2,147,483,647"):
        request({**GOOD, "seed": -5})
    with pytest.raises(UserError, match="from 0.05 to 1"):
        request({**GOOD, "top_p": 0})


def test_drafters_are_called_by_names_that_people_know():
    labels = {key: entry["label"] for key, entry in drafter_menu().items()}
    assert labels["none"] == "Plain decoding (none)"
    assert labels["ddtree"] == "Block diffusion tree, DDTree (ddtree)"
    assert all(label.endswith(f"({key})") for key, label in labels.items())


def test_an_address_is_a_wish():
    assert wish() == {}
    assert wish(preset="nowhere", drafter="nothing", verifier="none at all") == {}
    values = wish(drafter="chain", **{"o.length": "1e9", "o.other": "3", "t": "-4", "n": "nan"})
    assert json.loads(values["pair"]) == {**CHAIN, "options": {"length": 32}}
    assert values["temperature"] == 0
    assert values["max_new_tokens"] == RANGES["max_new_tokens"].default
    assert len(wish(prompt="x" * 99999)["prompt"]) == LIMITS.prompt_characters


def test_an_address_may_name_an_example():
    name, preset = list(preset_menu().items())[1]
    values = wish(preset=name, seed="3")
    assert (values["prompt"], values["pair"]) == (preset["prompt"], preset["pair"])
    assert values["seed"] == 3


def test_every_example_can_be_asked_for():
    for preset in preset_menu().values():
        if missing_target(preset["models"]):
            with pytest.raises(UserError, match="is not on this machine yet"):
                request(preset)
        else:
            assert request(preset).prompt == preset["prompt"]


def test_no_visitor_can_name_a_directory():
    asked = request({**GOOD, "target": "/etc", "draft": "/etc"})
    assert asked.models == request(GOOD).models
    with pytest.raises(UserError, match="There is no family of models '/etc'"):
        request({**GOOD, "models": "/etc"})


def test_pairs_say_what_they_are():
    for about in drafter_menu().values():
        assert about["rules"]
        for words in about["rules"].values():
            assert any(told in words for told in ("lossless", "lossy", "another law"))
        assert set(about["automatic"].values()) <= set(about["rules"])
