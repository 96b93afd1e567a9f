"""The bench of reasoning steps: every contestant's texts are judged, and the table shows which were right."""

import json

from engine.bench import reasoning_suite as reasoning
from engine.training.generators import is_held_out
from presets import family


def test_a_small_bench(tmp_path, capsys):
    drawn = reasoning.held_out_sums(3)
    assert len(drawn) == 3 * len(reasoning.KINDS) and all(
        is_held_out(prompt) for prompt, _ in drawn
    )
    sums = drawn[:1]
    out = tmp_path / "sums.json"
    rows = {row.name: row for row in reasoning.run_reasoning(family(), sums, str(out))}
    assert [row.sums for row in rows.values()] == [1] * len(reasoning.CONTESTANTS)
    large, small = rows["large alone"], rows["small alone"]
    assert (large.small_tokens, large.target_passes) == (0, large.tokens)
    assert (small.small_tokens, small.target_passes) == (small.tokens, 0)
    helped = rows["specreason"]
    assert 0 < helped.small_tokens < helped.tokens and helped.target_passes < helped.tokens
    told = capsys.readouterr().out
    for row in rows.values():
        assert f"{row.name:22}{row.right:8d}{row.right:8.0%}" in told
    assert [one["right"] for one in json.loads(out.read_text("utf-8"))] == [
        row.right for row in rows.values()
    ]
