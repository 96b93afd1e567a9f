"""The bench of the overlap: what is counted, and that both ways write the same text."""

import json

import pytest

from engine.bench import overlap
from engine.core.step import Span
from presets import family


def test_together_is_the_time_in_which_both_lanes_work():
    spans = [Span("target", "", 10, 20), Span("draft", "", 5, 12), Span("draft", "", 18, 30)]
    assert overlap.together(spans) == 4
    assert overlap.together(spans[:1]) == 0


def test_a_small_bench(monkeypatch, tmp_path, capsys):
    for name, value in {"LENGTHS": (2,), "TOKENS": 6, "WARM_UP": 2}.items():
        monkeypatch.setattr(overlap, name, value)
    monkeypatch.setattr(overlap, "settled", lambda models: {"length": 2})
    out = tmp_path / "overlap.json"
    chain, pearl = overlap.run_overlap(family(), ["Once upon a time"], 1, str(out))
    assert (chain.tokens, pearl.tokens) == (6, 6)
    assert chain.both is None and 0 <= pearl.both <= 1
    assert "best pearl against chain" in capsys.readouterr().out
    found = json.loads(out.read_text("utf-8"))
    assert [row["name"] for row in found["rows"]] == ["chain 2", "pearl 2"]
    assert found["rows"][0]["draft_share"] == pytest.approx(chain.draft_share)
