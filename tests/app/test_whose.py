"""Whose settings the controls hold: an example's, or the visitor's own."""

import json

import pytest

from app import link
from app.controls import RANGES
from app.example_menu import opening_race, preset_menu, race_menu
from app.menu import offer
from app.settings import LIMITS
from engine.trace import read_trace
from presets import races, trace_text
from tests.viz.builder import Toy
from viz.race import split


def taken_over(text: str) -> dict:
    """Return the control values that Watch takes from this trace."""
    values = link.read(link.wish_of(read_trace(text), offer()), preset_menu(), offer())
    return values | json.loads(values.get("pair", "{}"))


def own_options(values: dict) -> dict:
    """Return the drafter's options without the choice of a draft model, which must be the usual one."""
    assert values["options"].get("draft", "draft") == "draft"
    return {name: value for name, value in values["options"].items() if name != "draft"}


@pytest.mark.parametrize("name", ["story-tree", "story-sampled", "edit-lookup"])
def test_a_run_says_how_to_make_it_again(name):
    trace = read_trace(trace_text(name))
    values = taken_over(trace.to_ndjson())
    assert values["prompt"] == trace.run["prompt"]["text"]
    assert values["drafter"] == trace.run["drafter"]["key"]
    assert own_options(values) == trace.run["drafter"]["options"]
    assert values["verifier"] == "", "the rule that comes by itself"
    assert {key: values[key] for key in trace.run["sampling"]} == trace.run["sampling"]
    usual = RANGES["max_new_tokens"].default  # also where the text came to its end before
    assert values["max_new_tokens"] == max(trace.summary["new_tokens"], usual)


def test_a_strangers_run_is_clamped_like_an_address():
    run, *rest = trace_text("story-tree").splitlines(keepends=True)
    changed = json.loads(run)
    changed["prompt"]["text"] = "x" * (LIMITS.prompt_characters + 5)
    changed["drafter"]["options"] |= {"budget": 10**9, "unheard": 1}
    changed["sampling"]["temperature"] = 99.0
    changed["verifier"]["key"] = "sampler_match"
    values = taken_over("".join([json.dumps(changed) + "\n", *rest]))
    assert len(values["prompt"]) == LIMITS.prompt_characters
    assert values["options"]["budget"] == 256 and "unheard" not in values["options"]
    assert (values["temperature"], values["verifier"]) == (2, "sampler_match")
    assert "pair" not in taken_over(Toy(key="nobody").ndjson())


def test_a_race_says_how_to_make_it_again():
    traces = {lane: read_trace(own) for lane, own in split(opening_race()).items()}
    wish = link.wish_of_race(traces.values(), offer())
    values = link.read_race(wish, race_menu(), offer())
    lanes = json.loads(values["lanes"])
    assert [lane["drafter"] for lane in lanes] == [lane.drafter for lane in races()[0].lanes]
    assert own_options(lanes[1]) == traces["chain"].run["drafter"]["options"]
    assert values["prompt"] == races()[0].prompt
