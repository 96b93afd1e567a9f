"""The examples: one strip of cards, each with a run made earlier; and whose the settings are, an example's or the visitor's."""

import re

import pytest

from app.example_menu import preset_menu, race_menu
from app.traces import BACK
from presets import presets, trace_text
from presets.families import converses, title
from tests.app.visitor import PROMPT, wait_address, wait_prompt

OWN = "Your own"
INSIDE = """() => {
  const strip = document.querySelector('.pg-card-strip').getBoundingClientRect();
  return [...document.querySelectorAll('.pg-card')].filter((card) => { const own = card.getBoundingClientRect();
    return own.left >= strip.left - 1 && own.right <= strip.right + 1; }).map((card) => card.dataset.card);
}"""
"""The cards that are seen whole."""


def shows(visitor, preset) -> None:
    """Wait until the page shows this example."""
    page = visitor.page
    page.wait_for_function(
        "p => document.querySelector('#prompt textarea').value == p", arg=preset.prompt
    )
    wait_prompt(page, preset.prompt)
    assert page.locator("#preset :checked").get_attribute("value") == preset.name
    assert visitor.trace() == trace_text(preset.name)


@pytest.mark.journey
def test_they_are_chosen_and_left_and_a_run_of_ones_own_comes_back(visit):
    preset, (first, second, third) = presets()[3], presets()[:3]
    visitor = visit(f"/?preset={preset.name}")
    page = visitor.page
    assert visitor.trace() == trace_text(preset.name), "the first that is drawn"
    shows(visitor, preset)
    page.wait_for_function(
        """Number(document.querySelector('#timeline').ariaValueNow) ===
          DraftscopePage.tellingStep(DraftscopePage.view('watch').model.steps) + 1"""
    )
    wide = page.viewport_size
    for width in range(1000, 1400, 25):
        page.set_viewport_size({"width": width, "height": wide["height"]})
        page.wait_for_function(f"name => ({INSIDE})().includes(name)", arg=preset.name)
    page.set_viewport_size(wide)
    cards = page.locator("#preset .pg-card")
    assert cards.count() == len(presets())
    for card, one in zip(cards.all(), presets(), strict=True):
        assert one.title == card.text_content().strip()
        assert preset_menu()[one.name]["look_for"] in card.get_attribute("title")
    names = page.locator("#preset").get_by_role("button", name=re.compile(r"^\d+ examples"))
    names.click()
    assert len(page.evaluate(INSIDE)) == int(names.inner_text().split()[0]), "all in a list"
    page.keyboard.press("Escape")
    assert names.get_attribute("aria-expanded") == "false"
    assert 0 < len(page.evaluate(INSIDE)) < len(presets())
    visitor.choose_example(first.title)
    shows(visitor, first)
    told = "text => document.querySelector('.pg-offer .pg-note').textContent.startsWith(text)"
    page.wait_for_function(told, arg=f"Look for: {first.look_for}")
    page.wait_for_timeout(1500)  # the requests for its figures are over
    visitor.type_prompt(first.prompt + " and")
    page.wait_for_function(told, arg=OWN)
    assert page.locator("#preset :checked").count() == 0
    asked = len(visitor.requests)
    visitor.type_prompt(first.prompt)
    page.wait_for_function(told, arg=f"Look for: {first.look_for}")
    assert page.locator("#preset :checked").get_attribute("value") == first.name
    calls = [url for url in visitor.requests[asked:] if "/queue/join" in url]
    assert calls == [], "the browser sees to it alone"
    visitor.pick("chain")
    page.wait_for_function(told, arg=OWN)
    wait_address(page, drafter="chain", preset=None)
    assert page.is_hidden("#back")
    visitor.set_number("max_new_tokens", 16)
    assert visitor.run(PROMPT) == "done"
    mine = visitor.trace()
    page.wait_for_selector(".ds-speed[data-known]")
    measured = page.inner_text(".ds-speed")
    for one in (second, third):
        visitor.choose_example(one.title)
        shows(visitor, one)
        page.wait_for_function(told, arg=f"Look for: {one.look_for}")
        if one is second:
            page.locator("#watch-status").get_by_text("put away").wait_for()
    page.click("#back")
    page.wait_for_function("mine => DraftscopePage.trace('watch') == mine", arg=mine)
    page.wait_for_function(
        "said => document.querySelector('.ds-speed').innerText == said", arg=measured
    )
    page.locator("#watch-status").get_by_text(BACK).wait_for()
    assert page.evaluate("DraftscopePage.ranHere('watch')")
    assert page.input_value("#prompt textarea") == PROMPT, "and its settings with it"
    page.wait_for_function(told, arg=OWN)
    assert page.locator("#preset :checked").count() == 0
    page.wait_for_selector("#back", state="hidden")
    chat = next(one for one in presets() if converses(one.models))
    card = page.locator(f"#preset [data-card={chat.name}]")
    assert not card.is_visible(), "those of a chat model stand apart"
    page.get_by_role("button", name=title(chat.models), exact=True).click()
    page.wait_for_function(
        "text => DraftscopePage.trace('watch') === text", arg=trace_text(chat.name)
    )
    assert card.locator("input").is_checked(), "the first of its group opens with it"
    page.locator("#watch-status").get_by_text("not on this machine yet").wait_for()
    assert not page.locator(f"#preset [data-card={first.name}]").is_visible()
    assert visitor.run() == "error" and "not on this machine yet" in visitor.alarm
    page.get_by_role("button", name=re.compile(r"^\d+ examples$")).click()
    visitor.choose_example(first.title)
    shows(visitor, first)


@pytest.mark.journey
def test_a_link_to_a_run_shows_no_other_before_however_late_it_comes(server, tabs):
    preset, held, page = presets()[3], [], tabs.open()
    page.route("**/gradio_api/run/**", lambda route: held.append(route))
    page.goto(f"{server.url}/?preset={preset.name}", wait_until="commit")
    page.wait_for_selector("#tree", state="attached")
    page.wait_for_selector("p.loading", state="detached")
    page.wait_for_timeout(3000)
    assert held and page.evaluate("DraftscopePage.trace('watch')") == ""
    for route in held:
        route.continue_()
    page.unroute("**/gradio_api/run/**")
    page.wait_for_selector("#tree g[data-node]", state="attached")
    assert page.evaluate("DraftscopePage.trace('watch')") == trace_text(preset.name)
    tabs.close(page)


def test_keys_and_arrows_walk_through_the_cards(visit):
    visitor = visit("/", viewport={"width": 390, "height": 844})
    page = visitor.page
    page.locator("#preset :checked").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    shows(visitor, presets()[2])
    box = page.locator("#preset .pg-card").nth(2).bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390, "scrolled into sight"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1000, "height": 700})
    on, names = page.get_by_role("button", name="More examples"), set()
    before = page.get_by_role("button", name="Examples before these")
    while before.is_enabled():
        before.click()
        page.wait_for_timeout(200)
    for _ in presets():
        names |= set(page.evaluate(INSIDE))
        if on.is_disabled():
            break
        on.click()
        page.wait_for_timeout(200)
    assert names == {
        card.get_attribute("data-card") for card in page.locator(".pg-card:not([hidden])").all()
    }
    before.click()
    assert not on.is_disabled()


def test_a_host_without_real_models_offers_none_of_their_examples(monkeypatch):
    assert any(entry["group"] for entry in preset_menu().values())
    monkeypatch.setenv("DRAFTSCOPE_REAL_MODELS", "off")
    offered = [*preset_menu().values(), *race_menu().values()]
    assert offered and not any(entry["group"] for entry in offered)
