"""The bench of retrieval: what it asks, what it counts, and that all drafters write the same text."""

import json

from engine.bench import lookup_cost, retrieval
from engine.memory import Memory
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
    found = json.loads(out.read_text("utf-8"))
    kept = {(row["workload"], row["drafter"]) for row in found["speeds"]}
    assert {workload for workload, _ in kept} == {"edit", "story", "repeated", "long"}
    assert {drafter for _, drafter in kept} == {*retrieval.KEYS, *retrieval.LONG}
    assert all(row["same"] == 1 for row in found["speeds"]), "all of them are exact"
    sized = {row["what"]: row["bytes"] for row in found["lookups"]}
    assert all(sized[what] for what in sized if not what.startswith("rapid")) and len(sized) == 5


def test_without_parts_the_others_are_measured(monkeypatch):
    paths = ModelPaths(family().target)
    assert retrieval.needed(paths) == {}
    assert set(retrieval.needed(family())) == {"draft", "datastore", "diffusion"}
