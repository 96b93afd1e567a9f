"""The examples: one strip of cards, each with a run made earlier."""

import pytest

from app.menu import preset_menu, race_menu
from presets import opening_example, presets, trace_text
from presets.families import title
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
    recorded = trace_text(preset.name)
    assert visitor.trace() == recorded


def test_every_example_has_a_card_that_tells_what_to_look_for(visit):
    page = visit("/").page
    cards = page.locator("#preset .pg-card")
    assert cards.count() == len(presets())
    for card, preset in zip(cards.all(), presets(), strict=True):
        assert preset.title == card.text_content().strip()
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


@pytest.mark.journey
def test_the_examples_of_a_chat_model_stand_apart_and_a_new_run_needs_it(visit):
    visitor = visit("/")
    page = visitor.page
    first = next(one for one in presets() if one.turns)
    card = page.locator(f"#preset [data-card={first.name}]")
    assert not card.is_visible()
    page.get_by_role("button", name=title(first.models), exact=True).click()
    card.locator("input").check(force=True)
    recorded = trace_text(first.name)
    page.wait_for_function("text => DraftscopePage.trace('watch') === text", arg=recorded)
    page.wait_for_function(
        "document.querySelector('#watch-status').innerText.includes('not on this machine yet')"
    )
    assert not page.locator(f"#preset [data-card={presets()[0].name}]").is_visible()
    assert visitor.run() == "error" and "not on this machine yet" in visitor.alarm
    page.get_by_role("button", name="Examples", exact=True).click()
    visitor.choose_example(presets()[0].title)
    shows(visitor, presets()[0])


def test_a_host_without_real_models_offers_none_of_their_examples(monkeypatch):
    assert any(entry["group"] for entry in preset_menu().values())
    monkeypatch.setenv("DRAFTSCOPE_REAL_MODELS", "off")
    offered = [*preset_menu().values(), *race_menu().values()]
    assert offered and not any(entry["group"] for entry in offered)


def test_an_address_brings_the_examples_own_run(visit):
    preset = presets()[3]
    visitor = visit(f"/?preset={preset.name}")
    recorded = trace_text(preset.name)
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
    assert visitor.trace() == trace_text(opening_example())


@pytest.mark.journey
def test_a_finished_run_is_put_away_with_a_word_and_can_be_brought_back(visit):
    visitor = visit()
    page = visitor.page
    assert page.is_hidden("#back")
    assert visitor.run() == "done"
    mine = visitor.trace()
    visitor.choose_example(presets()[1].title)
    shows(visitor, presets()[1])
    page.wait_for_function("document.querySelector('#watch-status').innerText.includes('put away')")
    visitor.choose_example(presets()[2].title)
    shows(visitor, presets()[2])
    page.click("#back")
    page.wait_for_function("mine => DraftscopePage.trace('watch') == mine", arg=mine)
    assert page.evaluate("DraftscopePage.ranHere('watch')")
    assert page.input_value("#prompt textarea") == PROMPT, "and its settings with it"
    assert page.locator("#preset :checked").count() == 0
    assert page.inner_text(".pg-offer .pg-note").startswith("Your own")
    page.wait_for_selector("#back", state="hidden")
