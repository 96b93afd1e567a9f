"""The bench of retrieval: what it asks, what it counts, and that all drafters write the same text."""

import json
import re

import torch

from engine.bench import lookup_cost, retrieval
from engine.bench.retrieval import NODES, OPTIONS, contestant
from engine.core.memory import Memory
from engine.core.options import resolve
from engine.parts.loading import ModelPaths, load_models
from presets import family, prompts


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


def test_both_write_the_same_and_memory_saves_passes(monkeypatch):
    monkeypatch.setattr(retrieval, "TOKENS", 24)
    models, prompt = load_models(family(), {}), prompts("template")[0]["prompt"]
    memory = Memory()
    texts = [retrieval.write(models, key, prompt, memory) for key in ("prompt_lookup", "suffix")]
    assert texts[0][0] == texts[1][0]
    again, passes = retrieval.write(models, "suffix", prompt, memory)
    assert again == texts[1][0] and passes < texts[1][1]


def test_a_small_bench(monkeypatch, tmp_path, capsys):
    for name, value in {"TOKENS": 6, "LENGTHS": (50, 80), "REPEATED": 5}.items():
        monkeypatch.setattr(retrieval, name, value)
    monkeypatch.setattr(lookup_cost, "LOOKUPS", 3)
    out = tmp_path / "retrieval.json"
    workloads = {"edit": prompts("edit")[:1], "story": prompts("story")[:1]}
    retrieval.retrieval(family(), workloads, True, str(out))
    told = capsys.readouterr().out
    for line in ("suffix against prompt_lookup, repeated", "rapid against chain, long"):
        assert line in told
    assert "rasd against dyspec, edit" in told and "rasd against datastore, story" in told
    assert re.search(r"rasd is above both its sources on [0-2] of 2 workloads", told)
    found = json.loads(out.read_text("utf-8"))
    kept = {(row["workload"], row["drafter"]) for row in found["speeds"]}
    assert {workload for workload, _ in kept} == {"edit", "story", "repeated", "long"}
    assert {drafter for _, drafter in kept} == {*retrieval.KEYS, *retrieval.LONG}
    assert all(row["same"] == 1 for row in found["speeds"]), "all of them are exact"
    sized = {row["what"]: row["bytes"] for row in found["lookups"]}
    assert all(sized[what] for what in sized if not what.startswith("rapid")) and len(sized) == 5


def test_rasd_and_its_sources_may_draft_equally_many_nodes():
    options = {key: resolve(key, contestant(key).options, own) for key, own in OPTIONS.items()}
    rasd = options["rasd"]
    assert rasd["this_text"], "both the text and the datastore are looked into"
    assert rasd["budget"] + 2 * rasd["retrieved"] == NODES
    assert options["dyspec"]["budget"] == options["datastore"]["retrieved"] == NODES


def test_workloads_on_which_rasd_wins_are_counted():
    """On "b" only one source is slower; the repeated requests are no workload of their own."""
    values = {"a": (3, 2, 1), "b": (2, 3, 1), retrieval.AGAIN: (3, 2, 1)}
    speeds = [
        retrieval.Speed(name, key, float(value), 1.0, 1.0)
        for name, row in values.items()
        for key, value in zip(("rasd", *retrieval.SOURCES), row, strict=True)
    ]
    told = retrieval.table(speeds, [])
    assert "rasd is above both its sources on 1 of 2 workloads, with 16 nodes each" in told
    assert "rasd against datastore, repeated: 3.00" in told


def test_runs_compute_with_the_threads_of_the_models(monkeypatch, capsys):
    monkeypatch.setattr(retrieval, "compare", lambda *_: seen.append(torch.get_num_threads()) or [])
    monkeypatch.setattr(retrieval, "lookup_costs", lambda *_: [])
    monkeypatch.setattr(retrieval, "load_models", lambda *_: models)
    seen, models = [], load_models(family(), {})
    threads = torch.get_num_threads() + 1
    monkeypatch.setattr(models.target, "torch_threads", threads)
    retrieval.retrieval(family(), {"story": prompts("story")[:1]}, True, None)
    assert seen == [threads] * 3 and torch.get_num_threads() == threads - 1


def test_without_parts_the_others_are_measured(monkeypatch):
    paths = ModelPaths(family().target)
    assert retrieval.needed(paths) == {}
    assert set(retrieval.needed(family())) == {"draft", "datastore", "diffusion"}
