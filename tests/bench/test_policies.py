"""The figure of the unmasking policies: what is counted, and that it can be drawn."""

import json

import pytest

from engine.bench import policies
from engine.errors import UserError
from engine.methods import drafters
from engine.methods.shared.unmasking import UnmaskingDrafter
from presets import family, prompts
from viz.suite import main, suite_figures


def test_every_policy_is_measured():
    keys = {key for key, cls in drafters().items() if issubclass(cls, UnmaskingDrafter)}
    assert set(policies.KEYS) == keys | {"dflash", "diffuspec"}


def test_a_small_bench_and_its_figure(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(policies, "TOKENS", 12)
    monkeypatch.setattr(policies, "KEYS", ("dflash", "ccd", "learn2pd"))
    out = tmp_path / "policies.json"
    asked = {"code": [prompts("code")[1]["prompt"]]}
    rows = {row.policy: row for row in policies.run_policies(family(), asked, str(out))}
    told = capsys.readouterr()
    assert "ccd" in told.out
    if "learn2pd" not in rows:
        assert "learn2pd is left out: there is no part learn2pd" in told.err
    assert rows["dflash"].passes == 1 and all(1 <= row.passes <= 7 for row in rows.values())
    assert rows["ccd"].passes > 2, "two passes must agree, and the first fills one place"
    page = tmp_path / "policies.html"
    assert main([str(out), "-o", str(page)]) == 0
    (drawn,) = suite_figures(out.read_text("utf-8"))
    assert {trace.name for trace in drawn.data} == set(rows)
    for trace in drawn.data:
        assert (trace.x[0], trace.y[0]) == (rows[trace.name].passes, rows[trace.name].accepted)
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
