"""The bench of the load: every contestant at every load, the same texts, and a verdict."""

import json

import pytest

from engine.bench import load_suite as load
from engine.bench.suites import SUITES
from engine.cli.flags import SUITE_NAMES
from presets import family


@pytest.mark.exhaustive
def test_a_small_bench(monkeypatch, tmp_path, capsys):
    for name, value in {"TOKENS": 8, "WARM_UP": 2, "FIXED": (2,), "QUEUE": 2}.items():
        monkeypatch.setattr(load, name, value)
    out = tmp_path / "load.json"
    rows = load.run_load(family(), ["Once upon a time", "The dog"], (1, 3), 1, str(out))
    assert [(row.texts, row.written, row.equal) for row in rows] == [(1, 3, 3), (3, 9, 9)]
    for row in rows:
        assert set(row.speeds) == {"none", "chain 2", "smartspec"}
        best = max(row.speeds["none"], row.speeds["chain 2"])
        assert row.ratio == row.speeds["smartspec"] / best
    told = capsys.readouterr().out
    least = min(row.ratio for row in rows)
    assert f"{'met' if least >= load.LEAST else 'missed'}: 0.97" in told
    assert "12 of 12 texts written alike" in told
    assert set(SUITE_NAMES) == set(SUITES) - {"openvino"}  # which is --peer openvino
    assert [row["ratio"] for row in json.loads(out.read_text("utf-8"))["rows"]] == [
        row.ratio for row in rows
    ]
