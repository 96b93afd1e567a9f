"""The things that the page tells its readers to look for are true of the runs that it shows."""

import json
import re

import pytest

from engine.errors import UserError
from engine.trace import read_trace
from presets import cards, presets, races, trace_names
from presets.checked import checked, compare
from presets.conditions import KNOWN, claims, figure, finished, holds, untrue
from tests.viz.builder import Toy


def test_every_look_for_is_true_of_its_finished_run():
    assert list(untrue()) == [], "python -m presets check"


def test_every_look_for_fits_the_two_lines_that_the_page_has_for_it():
    filled = {one.name: re.sub(r"\{[^}]*\}", "0.0", one.look_for) for one in presets()}
    assert [name for name, text in filled.items() if len(text) > 143] == []


def test_everything_that_can_be_watched_has_a_condition():
    told = {whose for whose, _, conditions in claims() if conditions}
    assert told >= {one.name for one in (*presets(), *races())}
    assert told >= {f"the card {card.key}" for card in cards().values() if card.example}


def test_a_condition_that_is_not_true_is_told():
    name = presets()[0].name
    steps = figure("steps", name)
    assert holds(f"steps == {steps}", name) and not holds(f"steps > {steps}", name)
    assert holds("tokens_a_step <= tokens_a_step of story-cold", "story-hot")
    assert not holds("tokens_a_step >= tokens_a_step of story-cold", "story-hot")


@pytest.mark.parametrize("bad", ["", "steps", "steps is 3", "nothing > 3", "chain.steps > 1"])
def test_a_condition_that_makes_no_sense_is_a_mistake(bad):
    with pytest.raises(UserError):
        holds(bad, presets()[0].name)


def test_every_figure_can_be_taken_of_any_run():
    trace = read_trace(Toy(steps=6).ndjson())
    assert all(isinstance(float(take(trace)), float) for take in KNOWN.values())


def test_a_judgement_without_doubt_is_not_tossed():
    sure, kept, refused = (
        {"node": 0, "accept": accept, "coin": coin}
        for accept, coin in ((1.0, 0.5), (0.6, 0.5), (0.4, 0.5))
    )
    trace = read_trace(Toy(steps=1).ndjson())
    trace.steps[0]["judgements"] = [sure, kept, refused]
    told = [KNOWN[name](trace) for name in ("tossed", "coins_kept", "coins_refused")]
    assert told == [2, 1, 1]


def test_a_doubled_word_that_is_kept_is_counted():
    trace = read_trace(Toy(steps=1).ndjson())
    nodes = {"token": [5, 5, 5], "piece": [" a"] * 3, "parent": [-1, 0, 1], "depth": [1, 2, 3]}
    trace.steps[0]["nodes"] |= nodes | {"status": ["accepted", "accepted", "rejected"]}
    told = [KNOWN[name](trace) for name in ("doubled", "doubled_kept", "draft_depth")]
    assert told == [2, 1, 3]


def test_every_race_has_a_finished_run_of_its_own():
    for race in races():
        traces = finished(race.name)
        assert list(traces) == [lane.name for lane in race.lanes], "python -m presets"
        for lane in race.lanes:
            trace = traces[lane.name]
            turns = trace.run["prompt"].get("messages")
            said = turns[-1]["content"] if turns else trace.run["prompt"]["text"]
            assert said == race.prompt
            assert trace.run["drafter"]["key"] == lane.drafter
            own = trace.run["drafter"]
            held = {**own["options"], **own.get("parts", {})}
            assert {name: held[name] for name in lane.options} == lane.options


def test_finished_runs_whose_text_is_bound_were_checked_against_plain_decoding():
    seeded = 0
    for name in trace_names():
        trace, told = finished(name)[""], checked()[name]
        greedy, rule = trace.run["sampling"]["temperature"] == 0, trace.run["verifier"]
        if rule["lossless"] and (greedy or rule["key"] == "sampler_match"):
            assert told["comparable"] and told["alike"], name
            assert told["tokens"] == trace.summary["new_tokens"]
            seeded += not greedy
    assert seeded, "the card of sampler match shows one"


def test_the_pieces_of_every_finished_run_are_its_text():
    for name in (*trace_names(), *(race.name for race in races())):
        for lane, trace in finished(name).items():
            pieces = [piece for step in trace.steps for piece in step["output"]["pieces"]]
            assert "".join(pieces) == trace.summary["text"], (name, lane)


def test_comparing_finds_the_first_difference():
    text = Toy(style="chain", rule="greedy", steps=6).ndjson()
    first = read_trace(text)
    assert compare(first, first) == {
        "comparable": True,
        "alike": True,
        "index": None,
        "tokens": first.summary["new_tokens"],
    }
    lines = [json.loads(line) for line in text.splitlines()]
    lines[2]["output"]["tokens"][0] += 1
    other = read_trace("".join(json.dumps(line) + "\n" for line in lines))
    told = compare(first, other)
    assert not told["alike"] and told["index"] == len(lines[1]["output"]["tokens"])
    sampled = read_trace(Toy(style="tree", steps=4).ndjson())
    assert not compare(sampled, sampled)["comparable"], "each draws with numbers of its own"


def test_an_example_without_a_finished_run_is_told_in_a_sentence():
    with pytest.raises(UserError, match="no finished run of 'nobody'"):
        finished("nobody")
