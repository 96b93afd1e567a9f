"""The bench of the load: every contestant at every load, the same texts, and a verdict."""

import pytest

from presets import family

load = pytest.importorskip("engine.methods.smartspec.load_suite")


@pytest.mark.exhaustive
def test_a_small_bench(monkeypatch):
    values = {"TOKENS": 8, "WARM_UP": 2, "FIXED": (2,), "QUEUE": 2, "QUICK_LOADS": (1, 3)}
    for name, value in values.items():
        monkeypatch.setattr(load, name, value)
    cards = [{"prompt": "Once upon a time"}, {"prompt": "The dog"}]
    report = load.measure(family(), {"story": cards}, True)
    rows = report.data["rows"]
    assert [(row["texts"], row["written"], row["equal"]) for row in rows] == [(1, 3, 3), (3, 9, 9)]
    for row in rows:
        assert list(row["speeds"]) == ["none", "chain 2", "smartspec"]
        best = max(row["speeds"]["none"], row["speeds"]["chain 2"])
        assert row["ratio"] == row["speeds"]["smartspec"] / best
    least = min(row["ratio"] for row in rows)
    assert f"{'met' if least >= load.LEAST else 'missed'}: 0.97" in report.text
    assert "12 of 12 texts written alike" in report.text
