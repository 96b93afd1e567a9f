"""The page as a page: how soon it stands, on what screens, for whom."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe

from presets import trace_files

PHONE = {"viewport": {"width": 390, "height": 844}}


def violations(page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{v['id']}: {node['target']} {node['failureSummary']}"
        for v in found
        for node in v["nodes"]
    ]


def test_it_opens_on_a_finished_trace_in_time(visit, server):
    assert trace_files(), "python -m presets makes the finished traces"
    visit("/").leave()
    visitor = visit("/")
    opened = visitor.drawn - visitor.first_byte
    print(f"server up in {server.seconds:.1f} s, opening trace drawn in {opened:.2f} s")
    summary = json.loads(visitor.trace().splitlines()[-1])
    assert summary["kind"] == "summary"
    if server.quiet:
        assert server.seconds < 15
        assert opened < 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_anybody(visit, scheme):
    visitor = visit(f"/?n=8&__theme={scheme}", color_scheme=scheme, reduced_motion="reduce")
    assert violations(visitor.page) == []
    visitor.page.click("#more button")
    assert visitor.run("Once upon a time") == "done"
    visitor.page.wait_for_selector("#watch-figures .js-plotly-plot")
    assert violations(visitor.page) == []
    visitor.run(" ")
    assert violations(visitor.page) == []
    visitor.open_compare()
    visitor.page.wait_for_selector("#compare-figures .js-plotly-plot")
    visitor.page.click("#race-more button")
    visitor.page.get_by_label("Rule and options of lane 2").click()
    assert violations(visitor.page) == []


def test_a_phone_need_not_scroll_sideways(visit):
    visitor = visit(**PHONE)
    wide = "document.documentElement.scrollWidth"
    assert visitor.page.evaluate(wide) <= 390
    assert visitor.run() == "done"
    visitor.page.wait_for_selector("#watch-figures .js-plotly-plot")
    assert visitor.page.evaluate(wide) <= 390
    visitor.open_compare()
    visitor.page.click("#race-more button")
    field = visitor.page.locator("#race-max_new_tokens input[type=number]")
    field.fill("8")
    field.press("Tab")
    visitor.page.click("#race")
    visitor.page.wait_for_function("DraftscopePage.stateOf('compare') === 'done'")
    visitor.page.wait_for_selector("#compare-figures .js-plotly-plot")
    assert visitor.page.evaluate(wide) <= 390


def test_the_keyboard_is_enough(visit):
    page = visit().page
    page.focus("#prompt textarea")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "run"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "step", "disabled buttons are skipped"


def test_words_explain_themselves(visit):
    page = visit().page
    word = page.get_by_role("button", name="target", exact=True).first
    word.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    tip = page.locator(f"[id='{word.get_attribute('aria-describedby')}']")
    assert tip.is_visible()
    page.focus("#prompt textarea")
    word.hover()
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_an_address_sets_the_controls(visit):
    visitor = visit("/?prompt=The+cat&drafter=chain&o.length=99&t=9&seed=12&n=5&verifier=nonsense")
    page = visitor.page
    page.wait_for_function("document.querySelector('#prompt textarea').value == 'The cat'")
    assert visitor.run() == "done"
    run = json.loads(visitor.trace().splitlines()[0])
    assert (run["drafter"]["key"], run["drafter"]["options"]["length"]) == ("chain", 32)
    assert run["sampling"]["temperature"] == 2
    assert run["sampling"]["seed"] == 12


def test_copied_links_bring_the_controls_back(visit):
    first = visit()
    first.choose("drafter", "chain")
    first.type_prompt("A small & odd prompt?")
    first.set_number("seed", 7)
    first.page.click("#copy-link")
    first.page.wait_for_function("location.search.includes('seed=7')")
    second = visit("/" + first.page.evaluate("location.search"))
    second.page.wait_for_function(
        "document.querySelector('#prompt textarea').value == 'A small & odd prompt?'"
    )
    assert second.run() == "done"
    run = json.loads(second.trace().splitlines()[0])
    assert (run["drafter"]["key"], run["sampling"]["seed"]) == ("chain", 7)
