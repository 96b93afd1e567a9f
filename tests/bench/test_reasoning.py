"""The bench of reasoning steps: every contestant's texts are judged, and the table shows which were right."""

import pytest

from engine.bench import reasoning_suite as reasoning
from engine.methods import drafters
from engine.training.generators import is_held_out
from presets import family


def test_a_small_bench(monkeypatch):
    drawn = reasoning.held_out_sums(3)
    assert len(drawn) == 3 * len(reasoning.KINDS)
    assert all(is_held_out(prompt) for prompt, _ in drawn)
    monkeypatch.setattr(reasoning, "held_out_sums", lambda count: drawn[:1])
    report = reasoning.measure(family(), {}, True)
    rows = {row["name"]: row for row in report.data}
    assert {row["sums"] for row in rows.values()} == {1}
    large, small = rows["large alone"], rows["small alone"]
    assert (large["small_tokens"], large["target_passes"]) == (0, large["tokens"])
    assert (small["small_tokens"], small["target_passes"]) == (small["tokens"], 0)
    lines = {line.split("  ")[0]: line.split() for line in report.text.splitlines()}
    for name, row in rows.items():
        assert [str(row["right"]), f"{row['right']:.0%}"] == lines[name][len(name.split()) :][:2]
    if "specreason" not in drafters():
        pytest.skip("there is no drafter that writes steps of reasoning")
    helped = rows["specreason"]
    assert 0 < helped["small_tokens"] < helped["tokens"]
    assert helped["target_passes"] < helped["tokens"]
