"""The examples: one strip of cards, each with a run made earlier."""

import pytest

from app.menu import preset_menu
from presets import opening_trace, presets, trace_files
from tests.app.test_page import PHONE
from tests.app.visitor import PROMPT


def shows(visitor, preset) -> None:
    """Wait until the page shows this example."""
    page = visitor.page
    page.wait_for_function(
        "p => document.querySelector('#prompt textarea').value == p", arg=preset.prompt
    )
    page.wait_for_function(
        "p => JSON.parse(DraftscopePage.trace('watch').split('\\n')[0]).prompt.text == p",
        arg=preset.prompt,
    )
    assert page.locator("#preset :checked").get_attribute("value") == preset.name
    recorded = trace_files()[preset.name].read_text("utf-8")
    assert visitor.trace() == recorded


def test_every_example_has_a_card_that_tells_what_to_look_for(visit):
    page = visit("/").page
    cards = page.locator("#preset .pg-card")
    assert cards.count() == len(presets())
    for card, preset in zip(cards.all(), presets(), strict=True):
        assert preset.title == card.inner_text().strip()
        assert preset_menu()[preset.name]["look_for"] in card.get_attribute("title")
    radio = page.get_by_role("radio", name=presets()[1].title)
    assert radio.count() == 1


def test_the_arrow_keys_walk_through_the_cards(visit):
    visitor = visit("/", reduced_motion="reduce", **PHONE)
    page = visitor.page
    page.locator("#preset :checked").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    shows(visitor, presets()[2])
    box = page.locator("#preset .pg-card").nth(2).bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390, "scrolled into sight"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.wait_for_selector("#watch-figures .js-plotly-plot")


def test_an_address_brings_the_examples_own_run(visit):
    preset = presets()[3]
    visitor = visit(f"/?preset={preset.name}")
    recorded = trace_files()[preset.name].read_text("utf-8")
    assert visitor.trace() == recorded, "the first that is drawn"
    shows(visitor, preset)
    page = visitor.page
    page.wait_for_function(
        """Number(document.querySelector('#timeline').ariaValueNow) ===
          DraftscopePage.tellingStep(DraftscopePage.view('watch').model.steps) + 1"""
    )
    page.wait_for_selector("#watch-figures .js-plotly-plot")


@pytest.mark.parametrize("path", ["/?preset=nowhere", "/?tab=compare&preset=story-chain"])
def test_an_address_without_such_an_example_opens_as_ever(visit, path):
    visitor = visit(path)
    assert visitor.trace() == opening_trace().read_text("utf-8")


@pytest.mark.journey
def test_a_finished_run_is_put_away_with_a_word_and_can_be_brought_back(visit):
    visitor = visit()
    page = visitor.page
    assert page.is_hidden("#back")
    assert visitor.run() == "done"
    mine = visitor.trace()
    page.locator("#preset [type=radio]").nth(1).check(force=True)
    shows(visitor, presets()[1])
    page.wait_for_function("document.querySelector('#watch-status').innerText.includes('put away')")
    page.locator("#preset [type=radio]").nth(2).check(force=True)
    shows(visitor, presets()[2])
    page.click("#back")
    page.wait_for_function("mine => DraftscopePage.trace('watch') == mine", arg=mine)
    assert page.evaluate("DraftscopePage.ranHere('watch')")
    assert page.input_value("#prompt textarea") == PROMPT, "and its settings with it"
    assert page.locator("#preset :checked").count() == 0
    assert page.inner_text(".pg-offer .pg-note").startswith("Your own")
    page.wait_for_selector("#back", state="hidden")
