"""The bench of joined passes: both ways write the same texts, and the table shows all of them."""

from engine.bench import joined_suite as joined
from presets import family


def test_a_small_bench(monkeypatch):
    for name, value in {"TOKENS": 6, "WARM_UP": 2, "QUICK_TEXTS": (2,)}.items():
        monkeypatch.setattr(joined, name, value)
    cards = [{"prompt": "Once upon a time"}, {"prompt": "The dog"}]
    report = joined.measure(family(), {"story": cards}, True)
    rows = report.data["rows"]
    assert [(row["drafter"], row["texts"], row["equal"]) for row in rows] == [
        ("none", 2, 2),
        ("chain", 2, 2),
    ]
    assert all(row["turns"] > 0 and row["joined"] > 0 and row["at_best"] > 0 for row in rows)
    assert "4 of 4 texts written alike" in report.text
