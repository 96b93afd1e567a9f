"""The figure of the scaling law, which its card has once the recipe has run."""

import math

import gradio as gr
import pytest

from app import methods
from presets.methods import SCALING
from tests.app.bare import bare_page
from tests.app.test_methods import MOUNT, TOY
from viz.scaling import expected, scaling_exhibits

LOG2 = math.log10(2)
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
    drafts, law = scaling_exhibits(FOUND)
    assert drafts["x"] == law["x"] == pytest.approx([3, 3 + LOG2, 3 + 2 * LOG2, 3 + 3 * LOG2])
    lines = {one["name"]: one["y"] for one in drafts["series"]}
    assert lines["trained on 100 tokens"] == [0.5, None, 0.5, None]
    assert lines["trained on 200 tokens"] == [None, 0.5, None, None]
    assert lines["held out, measured"] == [None, None, None, 0.62]
    assert lines["held out, predicted"] == [None, None, None, 0.6]
    assert law["series"][0]["y"][3] == pytest.approx(expected(LAW, 8000, 100, 20))
    assert expected(LAW, 1000, 100, 10) == pytest.approx(-0.4 + 0.3 + 0.1 - 0.02)
    assert "R² 0.930" in law["note"] and "-0.020" in law["note"]


def test_its_card_draws_it(browser):
    page = bare_page(browser.new_page(), {})
    page.evaluate(MOUNT, [{**TOY, "key": "law", "figure": scaling_exhibits(FOUND)}])
    card = page.locator("[data-method=law]")
    card.locator("summary").click()
    card.locator("svg.ds-curve").nth(1).wait_for()
    assert "held out, predicted" in card.inner_text() and "R² 0.930" in card.inner_text()
    page.close()


@pytest.mark.parametrize("found", [None, FOUND])
def test_its_card_has_it_once_the_recipe_was_run(monkeypatch, found):
    monkeypatch.setattr(methods, "scaling", lambda: found)
    with gr.Blocks():
        (card,) = (one for one in methods.Methods().cards.props["methods"] if one["key"] == SCALING)
    assert bool(card["figure"]) == (found is not None)
