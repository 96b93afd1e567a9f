"""Each thing has one name in all texts that a visitor reads, and no text is cut without a sign of the cut."""

import json
import re
from collections.abc import Iterator

import pytest

from app import words
from app.menu import drafter_menu, offer, preset_menu, race_menu
from engine.methods import drafters
from presets import HERE, cards

STILL = {"reduced_motion": "reduce"}
OTHER_WORDS = re.compile(r"\bbudgets?\b|\bexact (rule|method)s?\b|\bexactness\b", re.IGNORECASE)
"""Other words for nodes, and for lossless and lossy, which must not be used."""


def read_by_visitors() -> Iterator[str]:
    for about in drafter_menu().values():
        yield from (
            f"{option['label'] or option['name']}: {option['help']}" for option in about["options"]
        )
        yield about["summary"]
    for rule in offer()["rules"].values():
        yield from (rule["title"], rule["summary"])
    for entry in (*preset_menu().values(), *race_menu().values()):
        yield from (entry["title"], entry["look_for"])
    yield from (f"{card.title} {card.mechanism} {card.watch}" for card in cards().values())
    for lesson in sorted((HERE / "lessons").glob("*.md")):
        yield from lesson.read_text("utf-8").replace("race-budget", "").splitlines()
    yield json.dumps([value for name, value in vars(words).items() if name.isupper()])


def test_nodes_and_lossless_have_no_other_names():
    labels = {
        option["label"] or option["name"]
        for key, about in drafter_menu().items()
        for option in about["options"]
        if option["name"] in ("budget", "nodes") and drafters()[key].size_option == option["name"]
    }
    assert {label.lower() for label in labels} == {"nodes"}
    renamed = (line for line in read_by_visitors() if not line.startswith("Nodes: "))
    assert [line for line in renamed if OTHER_WORDS.search(line)] == []


def test_whoever_looks_for_width_finds_the_nodes():
    (nodes,) = (o for o in drafter_menu()["dyspec"]["options"] if o["name"] == "budget")
    assert "wider" in nodes["help"]
    assert any(
        "Wider" in entry["title"] and "nodes" in entry["title"] for entry in race_menu().values()
    )
    assert not any(o["label"].lower() == "width" for o in drafter_menu()["dyspec"]["options"])


FITS = """([field, title]) => {
  const box = document.querySelector(field), style = getComputedStyle(box), pen = document.createElement('canvas').getContext('2d');
  pen.font = style.font;
  return pen.measureText(title).width <= box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_no_title_of_an_example_is_cut_in_its_box(visit, width):
    visitor = visit("/", viewport={"width": width, "height": 844}, **STILL)
    page = visitor.page
    visitor.open_compare()
    field, titles = "#race-preset input", [entry["title"] for entry in race_menu().values()]
    assert [t for t in titles if not page.evaluate(FITS, [field, t])] == []
    assert not page.evaluate(FITS, [field, titles[0] * 3]), "a title that does not fit is seen"


def test_a_field_that_cuts_its_drafter_says_it_whole(visit):
    visitor = visit("/?tab=compare&lane1=stree&lane2=speculative_thinking", **STILL)
    fields = visitor.page.locator(".pg-racer [role=combobox]")
    visitor.change("race-")
    fields.nth(1).wait_for()
    for key, field in zip(("stree", "speculative_thinking"), fields.all(), strict=True):
        label = drafter_menu()[key]["label"]
        assert field.get_attribute("title") == field.input_value() == label
    visitor.pick("chain", ".pg-racer:nth-child(1) .drafter")
    assert fields.first.get_attribute("title") == drafter_menu()["chain"]["label"]


def test_the_lane_of_a_race_calls_its_options_as_the_controls_do(visit):
    page = visit("/?tab=compare&preset=race-budget", **STILL).page
    page.locator("[data-lane='dyspec-3'] .ds-lane-rule").wait_for()
    page.wait_for_function(
        "document.querySelector(\"[data-lane='dyspec-3'] .ds-lane-name\").textContent.includes('odes 64')"
    )
    heads = page.locator("[data-lane] .ds-lane-head").all_inner_texts()
    assert not any("budget" in head for head in heads)
    assert all(
        head.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
        for head in page.locator(".ds-lane-head, .ds-lane-name").all()
    )


@pytest.mark.parametrize("touch", [True, False])
def test_keys_are_spoken_of_where_there_are_some(visit, touch):
    settings = {"viewport": {"width": 390, "height": 844}, "has_touch": True} if touch else {}
    page = visit("/", **settings, **STILL).page
    said = page.inner_text("#watch-view .ds-pace-word")
    assert ("arrow keys" in said) == (not touch)
    page.evaluate("DraftscopePage.view('watch').select(0)")
    assert page.locator("#inspector th .ds-term[data-term=token]").count() == 1
