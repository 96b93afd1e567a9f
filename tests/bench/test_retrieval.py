"""The bench of retrieval: what it asks, what it counts, and that both drafters write the same text."""

import json

from engine.bench import retrieval
from engine.memory import Memory
from engine.parts.loading import load_models
from presets import family, prompts


def test_a_request_is_changed_in_one_place():
    assert retrieval.slightly_changed("Add 12 and 39.") == "Add 12 and 40."
    assert retrieval.slightly_changed("A story about frogs.") == "A story about garden."
    assert retrieval.slightly_changed("Hm") == "Hm"


def test_prompts_come_from_all_workloads_in_turn():
    kinds = {"a": [{"prompt": "a1"}, {"prompt": "a2"}], "b": [{"prompt": "b1"}]}
    assert retrieval.interleaved(kinds) == ["a1", "b1", "a2"]


def test_both_write_the_same_and_memory_saves_passes(monkeypatch):
    monkeypatch.setattr(retrieval, "TOKENS", 24)
    models, prompt = load_models(family(), {}), prompts("template")[0]["prompt"]
    memory = Memory()
    texts = [retrieval.write(models, key, prompt, memory) for key in ("prompt_lookup", "suffix")]
    assert texts[0][0] == texts[1][0]
    again, passes = retrieval.write(models, "suffix", prompt, memory)
    assert again == texts[1][0] and passes < texts[1][1]


def test_a_small_bench(monkeypatch, tmp_path, capsys):
    changes = {"TOKENS": 6, "LOOKUPS": 3, "LENGTHS": (50, 80), "REPEATED": 5, "ALONE": ("edit",)}
    for name, value in changes.items():
        monkeypatch.setattr(retrieval, name, value)
    out = tmp_path / "retrieval.json"
    workloads = {"edit": prompts("edit")[:1], "story": prompts("story")[:1]}
    retrieval.retrieval(family(), workloads, True, str(out))
    assert "suffix against prompt_lookup, repeated" in capsys.readouterr().out
    found = json.loads(out.read_text("utf-8"))
    assert {row["workload"] for row in found["speeds"]} == {"edit", "repeated"}
    assert all(row["bytes"] for row in found["lookups"] if row["drafter"] == "suffix")
