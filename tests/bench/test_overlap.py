"""The bench of the overlap: what is counted, and that both ways write the same text."""

from engine.bench import overlap_suite as overlap
from engine.bench.suite import Plan
from engine.core.step import Span
from presets import family


def test_together_is_the_time_in_which_both_lanes_work():
    spans = [Span("target", "", 10, 20), Span("draft", "", 5, 12), Span("draft", "", 18, 30)]
    assert overlap.together(spans) == 4
    assert overlap.together(spans[:1]) == 0


def test_a_small_bench(monkeypatch):
    monkeypatch.setattr(overlap, "LENGTHS", (2,))
    monkeypatch.setattr(overlap, "QUICK", Plan(prompts=1, rounds=1, tokens=6))
    monkeypatch.setattr(
        "engine.bench.contestants.settle_size", lambda cls, options, *_: options | {"length": 2}
    )
    cards = [{"id": "a", "prompt": "Once upon a time"}]
    report = overlap.measure(family(), {"story": cards}, True)
    chain, pearl = report.data["rows"]
    assert (chain["tokens"], pearl["tokens"]) == (6, 6)
    assert (chain["name"], pearl["name"]) == ("chain 2", "pearl 2")
    assert chain["both"] is None and 0 <= pearl["both"] <= 1
    assert 0 < chain["draft_share"] < 1
    assert "pearl 2, the best, against chain 2" in report.text
