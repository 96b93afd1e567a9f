"""The bench of joined passes: both ways write the same texts, and the table shows all of them."""

import json

from engine.bench import joined
from presets import family


def test_a_small_bench(monkeypatch, tmp_path, capsys):
    for name, value in {"TOKENS": 6, "WARM_UP": 2}.items():
        monkeypatch.setattr(joined, name, value)
    out = tmp_path / "joined.json"
    rows = joined.run_joined(family(), ["Once upon a time", "The dog"], (2,), 1, str(out))
    assert [(row.drafter, row.texts, row.equal) for row in rows] == [
        ("none", 2, 2),
        ("chain", 2, 2),
    ]
    assert all(row.turns > 0 and row.joined > 0 and row.at_best > 0 for row in rows)
    assert "4 of 4 texts written alike" in capsys.readouterr().out
    assert [row["drafter"] for row in json.loads(out.read_text("utf-8"))["rows"]] == [
        "none",
        "chain",
    ]
