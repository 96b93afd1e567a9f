"""The page as a whole: whether everybody can use it, and which screens it fits."""

import json
import urllib.request

import pytest

from tests.app.visitor import wait_figures
from tests.axe import violations
from tests.grids import some

PHONE = {"viewport": {"width": 390, "height": 844}}
WIDE = "document.documentElement.scrollWidth"


CLOCK = """async () => {
  const now = performance.now;
  let count = 0;
  performance.now = () => { count++; return now.call(performance); };
  await new Promise((heard) => setTimeout(heard, 1500));
  performance.now = now;
  return count;
}"""
"""How often the clock is read within a second and a half. Gradio would do so in each frame, for ever, to count the seconds
of its loading message."""


@pytest.fixture(params=some(["light", "dark"], {"light"}.__contains__))
def plainly(request, visit):
    """A page, and a function that checks it with axe, or what has changed of it."""
    visitor = visit(f"/?n=8&__theme={request.param}", color_scheme=request.param)

    def look(state: str, inside: str | None = None) -> None:
        assert violations(visitor.page, inside) == [], state

    return visitor, look


@pytest.mark.journey
def test_nothing_on_watch_stands_in_the_way_of_anybody(plainly):
    visitor, look = plainly
    page, focused = visitor.page, "document.activeElement.id"
    look("as it opens")
    assert any(page.evaluate(CLOCK) == 0 for _ in range(20)), (
        "a page that stands still draws frames"
    )
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").startswith("Skip to")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('#prompt') !== null")
    for button in ("run", "step"):
        page.keyboard.press("Tab")
        assert page.evaluate(focused) == button, "disabled ones are skipped"
    for count in (1, 2):
        page.keyboard.press("Enter")
        page.wait_for_function(
            f"DraftscopePage.trace('watch').trim().split('\\n').length === {count + 1}"
        )
        visitor.wait_state("paused")
        page.wait_for_function(f"{focused} === 'step'")
    page.locator("#timeline").press("Home")
    page.locator("#tree g[data-node]").first.click()
    look("paused, a node chosen", "#rooms")
    page.get_by_role("button", name="Icicle").click()
    page.locator("#watch-view .ds-large").click()
    look("an icicle in large type", "#watch-view")
    visitor.change()
    page.click("#more button")
    page.click("#drafter input")
    look("the panel open, and the list of drafters")
    page.keyboard.press("Escape")
    visitor.pick("dyspec")
    visitor.type_prompt("Once upon a time")
    page.focus("#run")
    page.keyboard.press("Enter")
    visitor.wait_state("done")
    page.wait_for_function(f"{focused} === 'run'")
    wait_figures(page)
    look("figures", "#watch-figures")
    visitor.run(" ")
    look("a mistake", "#watch-status")
    held = []
    page.route("**/PlotlyPlot*.js", lambda asked: held.append(asked))
    page.goto(page.url.split("?")[0], wait_until="commit")
    visitor.arrived()
    page.locator("#watch-figures-place").evaluate("place => place.scrollIntoView()")
    page.locator("#watch-figures .empty").first.wait_for(state="attached")
    look("figures whose library is not there yet", "#watch-figures")
    for asked in held:
        asked.continue_()
    wait_figures(page)


def test_nothing_on_compare_stands_in_the_way_of_anybody(plainly):
    visitor, look = plainly
    page = visitor.page
    visitor.open_compare()
    wait_figures(page, "compare")
    look("as it opens")
    visitor.change("race-")
    page.click("#race-more button")
    page.get_by_label("Rule and options of lane 2").click()
    page.locator("[data-lane]").nth(1).get_by_role("button", name="Details").click()
    look("the panel and a lane open")
    page.get_by_role("button", name="Start of the race").click()
    page.locator("#compare-view .ds-large").click()
    look("at its start, in large type")
    page.click("#race")
    page.wait_for_function("DraftscopePage.stateOf('compare') === 'done'")
    look("raced")


def test_a_phone_need_not_scroll_sideways_and_the_run_comes_into_sight(visit):
    visitor = visit(has_touch=True, **PHONE)
    page = visitor.page
    assert page.evaluate(WIDE) <= 390
    assert "arrow keys" not in page.inner_text("#watch-view .ds-pace-word"), "there are none"
    seen = """() => {
      const { top, bottom } = document.querySelector('#tree').getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    }"""
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert not page.evaluate(seen)
    page.evaluate("document.querySelector('#run').click()")
    visitor.wait_state("done")
    page.wait_for_function(f"({seen})()")
    wait_figures(page)
    assert page.evaluate(WIDE) <= 390
    visitor.open_compare()
    visitor.set_number("max_new_tokens", 8, "race-")
    page.click("#race")
    page.wait_for_function("DraftscopePage.stateOf('compare') === 'done'")
    wait_figures(page, "compare")
    assert page.evaluate(WIDE) <= 390


def test_large_type_is_for_the_whole_page_and_steps_are_read_out(visit):
    visitor = visit("/", viewport={"width": 1920, "height": 1080})
    page = visitor.page
    assert "arrow keys" in page.inner_text("#watch-view .ds-pace-word")
    said, pace = page.locator(".ds-spoken [role=status]"), page.get_by_label("Steps are read out")
    wide = "one => one.closest('.ds-spoken').getBoundingClientRect().width"
    assert pace.evaluate(wide) <= 1, "out of sight"
    pace.focus()
    assert pace.evaluate(wide) > 100
    timeline = page.locator("#timeline")
    pace.select_option("every step")
    timeline.press("Home")
    assert said.text_content().startswith("Step 1 of ")
    pace.select_option("never")
    timeline.press("ArrowUp")
    assert said.text_content().startswith("Step 1 of ")
    pace.select_option("every step")
    assert said.text_content().startswith("Step 2 of ")
    stage = "document.querySelector('#watch-view').getBoundingClientRect().width"
    before, button = page.evaluate(stage), page.locator("#watch-view .ds-large")
    assert button.inner_text() == "Large type" and "lecture hall" in button.get_attribute("title")
    button.click()
    assert page.evaluate(stage) >= before, "the picture has the whole width"
    assert page.locator("#preset").is_hidden()
    visitor.open_compare()
    page.wait_for_selector("[data-lane]")
    large = page.locator("#compare-view .ds-large")
    assert large.get_attribute("aria-pressed") == "true"
    large.click()
    page.get_by_role("tab", name="Watch").click()
    assert button.get_attribute("aria-pressed") == "false"
    assert page.locator("#preset").is_visible()


def test_no_event_reads_much_of_the_page(server):
    """Before an answer changes a component, Gradio copies the properties of everything inside it: a tenth of a second for
    all tabs, on every page that opens."""
    with urllib.request.urlopen(f"{server.url}/config", timeout=30) as given:
        config = json.load(given)
    inside = {}

    def count(node: dict) -> int:
        children = node.get("children") or []
        inside[node["id"]] = len(children) + sum(map(count, children))
        return inside[node["id"]]

    assert count(config["layout"]) > 100
    written = {place for event in config["dependencies"] for place in event["outputs"]}
    assert max(inside[place] for place in written) <= 10
