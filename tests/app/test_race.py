"""Comparisons without a browser: lanes, their limits, their addresses, the race made earlier."""

import json

import pytest

from app.controls import lanes
from app.example_menu import opening_race, preset_menu, race_menu
from app.link import read, read_race
from app.live import compare_job
from app.menu import offer, plain_pair
from app.settings import LIMITS
from engine.errors import UserError
from engine.methods import drafters
from engine.model.session import Session
from engine.trace import read_trace
from presets import KINDS, lane_names, races
from tests.engine.family import tokens_of, trace_of
from viz.race import split

CHAIN = plain_pair("chain")
NUMBERS = {"temperature": 0, "top_k": 0, "top_p": 1, "seed": 0, "max_new_tokens": 4}


def wish(**query):
    return read_race({"tab": "compare", **query}, race_menu(), offer())


def test_every_lane_has_its_own_options():
    chosen = [{"drafter": "chain", "options": {"length": length}} for length in (2, 3)]
    race = compare_job({"prompt": "Once", "lanes": json.dumps(chosen), **NUMBERS})
    text = race.header() + "".join(race.steps()) + race.summary()
    traces = {lane: read_trace(own) for lane, own in split(text).items()}
    assert list(traces) == ["chain", "chain-2"]
    assert traces["chain"].run["drafter"]["options"]["length"] == 2
    assert traces["chain-2"].run["drafter"]["options"]["length"] == 3


@pytest.mark.parametrize("part", [512, 2])
def test_the_lanes_read_their_prompt_once(part, monkeypatch):
    """Drafters with and without features; each lane writes the same text as a run of its own. Whole, and in parts, whichever
    lane's turn it is."""
    keys, prompt = [lane.drafter for lane in races()[0].lanes], "Once upon a time there was"
    alone = {key: trace_of(prompt, drafter=key, max_new_tokens=4) for key in keys}
    monkeypatch.setattr("engine.run.run.PART", part)
    taken, take_over = [], Session.take_over
    monkeypatch.setattr(
        Session, "take_over", lambda self, *given: taken.append(self) or take_over(self, *given)
    )
    chosen = [plain_pair(key) for key in keys]
    race = compare_job({"prompt": prompt, "lanes": json.dumps(chosen), **NUMBERS})
    text = race.header() + "".join(race.steps()) + race.summary()
    assert len(taken) == len(keys) - 1
    for key, own in split(text).items():
        trace = read_trace(own)
        assert tokens_of(trace) == tokens_of(alone[key])
        assert trace.summary["milliseconds"]["prefill"] > 0


def test_every_lane_has_its_own_rule():
    chosen = [{**CHAIN, "verifier": rule} for rule in ("", "sampler_match")]
    wanted = {"prompt": "Once", "lanes": json.dumps(chosen), **NUMBERS}
    race = compare_job({**wanted, "temperature": 0.8})
    rules = [json.loads(line)["verifier"]["key"] for line in race.header().splitlines()]
    assert rules == ["rejection", "sampler_match"]
    chosen[0]["verifier"] = "greedy"
    with pytest.raises(UserError, match="temperature 0 only"):
        compare_job({**wanted, "lanes": json.dumps(chosen), "temperature": 0.8})


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "",
        "[",
        "[" * 100_000,
        "3",
        "{}",
        '["chain", "chain"]',
        '[{"rule": "greedy"}, {"drafter": "chain"}]',
        json.dumps([{"drafter": "chain", "options": [1]}] * 2),
        json.dumps([{"drafter": 3, "options": {}}] * 2),
        json.dumps([{"drafter": "no such", "options": {}}] * 2),
        json.dumps(["chain", "chain"]),
        json.dumps([{**CHAIN, "rule_options": "x"}] * 2),
        json.dumps([{**CHAIN, "verifier": {"greedy": 1}}] * 2),
        json.dumps([{**CHAIN, "verifier": "no such"}] * 2),
        json.dumps([CHAIN, {"drafter": "chain", "options": {"length": 10**9}}]),
        json.dumps([CHAIN, {"drafter": "chain", "options": {"other": 1}}]),
        json.dumps([CHAIN]),
        json.dumps([CHAIN] * (LIMITS.lanes + 1)),
    ],
)
def test_lanes_that_make_no_race_are_told_in_one_sentence(bad):
    with pytest.raises(UserError) as told:
        compare_job({"prompt": "Once", "lanes": bad, **NUMBERS})
    assert str(told.value).endswith(".") and "\n" not in str(told.value)


def test_a_lane_that_drafts_too_much_is_refused_before_any_lane_is_opened(monkeypatch):
    opened = []
    monkeypatch.setattr("engine.run.opened.load_models", lambda *_: opened.append(1))
    chosen = [CHAIN, plain_pair("dyspec", {"budget": 256})]
    with pytest.raises(UserError) as told:
        compare_job({"prompt": "Once", "lanes": json.dumps(chosen), **NUMBERS})
    assert str(told.value) == (
        f"With these options {drafters()['dyspec'].title} drafts up to 256 nodes in a step; at most "
        f"{LIMITS.max_nodes} are allowed here. Set its nodes to {LIMITS.max_nodes} or fewer."
    )
    assert not opened


def test_lanes_have_names_of_their_own():
    names = lane_names(["chain", "none", "chain", "chain"])
    assert names == ["chain", "none", "chain-2", "chain-3"]


def test_there_is_a_race_for_every_workload():
    assert {race.kind for race in races() if not race.models} == set(KINDS)
    families = {"none", "chain", "tree", "retrieval", "diffusion"}
    for kind in KINDS:
        ran = [race_menu()[race.name]["lanes"] for race in races() if race.kind == kind]
        found = [{drafters()[lane.drafter].family for lane in lanes(one)} for one in ran]
        assert any(one >= families for one in found), kind
        assert all("none" in one for one in found), "plain decoding is in every race"


def test_the_race_made_earlier_is_one():
    traces = {lane: read_trace(own) for lane, own in split(opening_race()).items()}
    assert list(traces) == [lane.name for lane in races()[0].lanes], "python -m presets makes them"
    for lane, trace in traces.items():
        assert trace.run["drafter"]["key"] == lane
        assert trace.run["prompt"]["text"] == races()[0].prompt
        assert trace.summary["stop"] in ("eos", "length")


def test_an_address_may_set_a_race():
    values = wish(
        lane1="chain", lane2="chain", lane4="dyspec", t="-4", prompt="x" * 99999,
        **{"lane1.length": "1e9", "lane1.other": "3", "lane4.budget": "<b>", "lane9": "chain",
           "rule1": "sampler_match", "rule2": "<script>", "rule3": "greedy"},
    )  # fmt: skip
    assert json.loads(values["lanes"]) == [
        {**CHAIN, "options": {"length": 32}, "verifier": "sampler_match"},
        CHAIN,
        plain_pair("dyspec"),
    ]
    assert values["temperature"] == 0
    assert len(values["prompt"]) == LIMITS.prompt_characters
    lanes(values["lanes"])


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"preset": "nowhere"},
        {"preset": "story-tree"},
        {"lane1": "chain"},
        {"lane1": "nothing", "lane2": "<script>", "lane3": "chain"},
        {"lane0": "chain", "lane6": "chain", "lane-1": "none", "lane01": "none"},
    ],
)
def test_an_address_that_makes_no_sense_sets_nothing(query):
    assert "lanes" not in wish(**query) and "preset" not in wish(**query)


def test_an_address_is_for_one_tab():
    query = {"drafter": "chain", "prompt": "Once", "lane1": "chain", "lane2": "none"}
    assert read_race(query, race_menu(), offer()) == {}
    query["tab"] = "compare"
    assert read(query, preset_menu(), offer()) == {}
