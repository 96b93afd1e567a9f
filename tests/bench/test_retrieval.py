"""The bench of retrieval: what it asks, what it counts, and that all drafters write the same text."""

import re

import pytest
import torch

from engine.bench import lookup_cost
from engine.bench import retrieval_suite as retrieval
from engine.bench.goals import aims
from engine.bench.suite import Plan
from engine.methods import drafter, drafters
from engine.parts.loading import ModelPaths, load_models
from presets import family, prompts
from tests.bench.test_bench import row_of


def test_a_request_is_changed_in_one_place():
    assert retrieval.slightly_changed("Add 12 and 39.") == "Add 12 and 40."
    assert retrieval.slightly_changed("A story about frogs.") == "A story about garden."
    assert retrieval.slightly_changed("Hm") == "Hm"


def test_prompts_come_from_all_workloads_in_turn():
    kinds = {"a": [{"prompt": "a1"}, {"prompt": "a2"}], "b": [{"prompt": "b1"}]}
    assert retrieval.interleaved(kinds) == ["a1", "b1", "a2"]


def test_a_long_prompt_ends_with_its_request_and_holds_one_like_it():
    made = retrieval.long_prompts(["Add 1 and 2.", "Say hello.", "Go."])
    assert made[0] == "Add 1 and 3.\n\nGo.\n\nSay hello.\n\nAdd 1 and 2.\n\nAdd 1 and 2."
    assert made[1].startswith("Say garden.") and made[1].endswith("Say hello.")


@pytest.mark.usefixtures("few_graphs")
def test_a_small_bench(monkeypatch):
    plan = Plan(prompts=1, rounds=1, tokens=6)
    for name, value in {"QUICK": plan, "FULL": plan, "QUICK_LENGTHS": (50, 80)}.items():
        monkeypatch.setattr(retrieval, name, value)
    monkeypatch.setattr(lookup_cost, "LOOKUPS", 3)
    workloads = {"edit": prompts("edit")[:1], "story": prompts("story")[:1]}
    report = retrieval.measure(family(), workloads, True)
    told, found = report.text, report.data
    for line in ("suffix / prompt_lookup, repeated", "rapid / chain, long"):
        assert line in told
    assert "rasd / dyspec, edit" in told and "rasd / datastore, story" in told
    assert re.search(r"rasd is above all its sources on [0-2] of 2 workloads", told)
    kept = {(row["workload"], row["drafter"]) for row in found["speeds"]}
    assert {workload for workload, _ in kept} == {"edit", "story", "repeated", "long"}
    assert {drafter for _, drafter in kept} == set(retrieval.candidates(aims("retrieval")))
    assert all(row["same"] == 1 for row in found["speeds"]), "all of them are exact"
    sized = {row["what"]: row["bytes"] for row in found["lookups"]}
    assert set(sized) == {"prompt_lookup", "suffix", "aded", "datastore", "rapid: once a text"}
    assert all(sized[what] for what in sized if not what.startswith("rapid"))


def test_a_drafter_and_its_sources_may_draft_equally_many_nodes():
    if "rasd" not in drafters():
        pytest.skip("no drafter joins several sources")
    options = {}
    for aim in aims("retrieval"):
        options |= {one.key: one.options for one in aim.entrants if aim.of == "rasd"}
    assert {option.name: option.default for option in drafter("rasd").options}["this_text"], (
        "both the text and the datastore are looked into"
    )
    nodes = options["rasd"]["budget"] + 2 * options["rasd"]["retrieved"]
    assert options["dyspec"]["budget"] == options["datastore"]["retrieved"] == nodes


class Joined:
    sources = (type("A", (), {"key": "a"}), type("B", (), {"key": "b"}))


class Alone:
    sources = ()


def test_workloads_on_which_all_sources_are_slower_are_counted():
    """On "y" only one source is slower; the repeated requests are no workload of their own."""
    values = {"x": (3, 2, 1), "y": (2, 3, 1), retrieval.AGAIN: (3, 2, 1)}
    found = [
        row_of(key, workload, speed)
        for workload, speeds in values.items()
        for key, speed in zip(("both", "a", "b"), speeds, strict=True)
    ]
    (told,) = retrieval.above_sources({"a": Alone, "b": Alone, "both": Joined}, found)
    assert told.startswith("both is above all its sources on 1 of 2 workloads")


@pytest.mark.usefixtures("few_graphs")
def test_without_parts_the_others_are_measured(monkeypatch):
    """Runs compute with the threads of the models."""
    seen, threads = [], torch.get_num_threads() + 1
    models = load_models(family(), {})
    monkeypatch.setattr(models.target, "torch_threads", threads)
    asked = lambda _, needs, *__: (seen.append((needs, 0)), models)[1]
    monkeypatch.setattr(retrieval, "load_models", asked)
    count = lambda _, classes, *__: seen.append((set(classes), torch.get_num_threads())) or []
    monkeypatch.setattr(retrieval, "lookup_costs", count)
    plan = Plan(prompts=1, rounds=1, tokens=2)
    monkeypatch.setattr(retrieval, "QUICK", plan)
    retrieval.measure(ModelPaths(family().target), {"story": prompts("story")[:1]}, True)
    needs, *costs = seen
    assert needs == ({}, 0)
    own = {key for key, cls in retrieval.candidates(aims("retrieval")).items() if not cls.needs}
    assert costs == [(own, threads)] * 2 and torch.get_num_threads() == threads - 1
