"""The figure of the scaling law, which the page has once the recipe has run."""

import json

import gradio as gr
import pytest

from app import methods
from viz.scaling import expected, scaling_figure

LAW = {"intercept": -0.4, "slopes": {"parameters": 0.1, "tokens": 0.05, "batch": -0.02}, "r2": 0.93}
POINTS = [
    {"parameters": size, "tokens": tokens, "batch": batch, "acceptance": 0.5}
    for size, tokens, batch in ((1000, 100, 10), (2000, 200, 20), (4000, 100, 40))
]
FOUND = {
    "points": POINTS,
    "held_out": {"parameters": 8000, "tokens": 800, "batch": 20, "acceptance": 0.62},
    "law": LAW,
    "predicted": 0.6,
}


def test_it_shows_drafts_law_and_prediction():
    figure = json.loads(scaling_figure(FOUND).to_json())
    marks = [one for one in figure["data"] if one["mode"] == "markers"]
    lines = [one for one in figure["data"] if one["mode"] == "lines"]
    assert [one["name"] for one in marks[:2]] == ["trained on 100 tokens", "trained on 200 tokens"]
    assert marks[0]["x"] == [1000, 4000]
    assert [one["y"] for one in marks[2:]] == [[0.62], [0.6]]
    assert lines[0]["y"][1] == pytest.approx(expected(LAW, 8000, 100, 20))
    assert expected(LAW, 1000, 100, 10) == pytest.approx(-0.4 + 0.3 + 0.1 - 0.02)
    (note,) = figure["layout"]["annotations"]
    assert "R² 0.930" in note["text"] and "-0.020" in note["text"]


@pytest.mark.parametrize("found", [None, FOUND])
def test_the_methods_tab_has_it_once_the_recipe_was_run(monkeypatch, found):
    monkeypatch.setattr(methods, "scaling", lambda: found)
    with gr.Blocks() as page:
        methods.Methods()
    plots = [one for one in page.blocks.values() if isinstance(one, gr.Plot)]
    assert len(plots) == (found is not None)
