"""The figure of the unmasking policies: what is counted, and that it can be drawn."""

import json

import pytest

from engine.bench import policies_suite as policies
from engine.bench.suite import Plan
from engine.errors import UserError
from engine.methods import drafters
from engine.methods.shared.unmasking import UnmaskingDrafter
from presets import family, prompts
from viz.suite import main, suite_figures


def test_every_policy_is_measured():
    keys = {cls.key for cls in policies.candidates()}
    assert keys >= {cls.key for cls in drafters().values() if issubclass(cls, UnmaskingDrafter)}
    assert {"dflash", "diffuspec"} & drafters().keys() <= keys and "ddtree" not in keys


def test_a_small_bench_and_its_figure(few_graphs, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(policies, "QUICK", Plan(prompts=1, rounds=1, tokens=12))
    some = [cls for cls in policies.candidates() if cls.key in ("dflash", "ccd", "learn2pd")]
    monkeypatch.setattr(policies, "candidates", lambda: some)
    out = tmp_path / "policies.json"
    report = policies.measure(family(), {"code": prompts("code")[1:2]}, True)
    report.deliver(str(out))
    rows = {row["policy"]: row for row in report.data["rows"]}
    told = capsys.readouterr()
    assert all(key in told.out for key in rows) and "viz.suite" in told.err
    if "learn2pd" not in rows:
        assert "learn2pd is left out: there is no part learn2pd" in told.err
    assert rows["dflash"]["passes"] == 1
    assert all(1 <= row["passes"] <= 7 for row in rows.values())
    assert rows["ccd"]["passes"] > 2, "two passes must agree, and the first fills one place"
    page = tmp_path / "policies.html"
    assert main([str(out), "-o", str(page)]) == 0
    (drawn,) = suite_figures(out.read_text("utf-8"))
    assert {trace.name for trace in drawn.data} == set(rows)
    for trace in drawn.data:
        row = rows[trace.name]
        assert (trace.x[0], trace.y[0]) == (row["passes"], row["accepted"])
    assert "<script src" not in page.read_text("utf-8"), "the page asks nobody for anything"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"figures": []}', '{"figures": [{"title": "a", "x": 1, "y": 2}]}']
)
def test_a_file_without_a_figure_is_refused(text):
    with pytest.raises(UserError, match="holds no figure"):
        suite_figures(text)


def test_words_of_a_file_are_not_markup():
    point = {"series": "<b>s", "label": "<img onerror=1>", "x": 1, "y": 2}
    given = {"title": "<i>t", "x": "a", "y": "b", "points": [point]}
    (drawn,) = suite_figures(json.dumps({"figures": [given]}))
    assert "<img" not in drawn.to_json() and "<b>" not in drawn.to_json()
