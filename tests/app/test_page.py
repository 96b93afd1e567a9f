"""The page as a whole: how soon it is drawn, which screens it fits, and whether everybody can use it."""

import pytest

from tests.axe import violations
from tests.grids import some

PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture(params=some(["light", "dark"], {"light"}.__contains__))
def plainly(request, visit):
    """A page on which nothing moves, and a function that checks it with axe, or what has changed of it."""
    settings = {"color_scheme": request.param, "reduced_motion": "reduce"}
    visitor = visit(f"/?n=8&__theme={request.param}", **settings)

    def look(state: str, inside: str | None = None) -> None:
        assert violations(visitor.page, inside) == [], state

    return visitor, look


@pytest.mark.journey
def test_nothing_on_watch_stands_in_the_way_of_anybody(plainly):
    visitor, look = plainly
    page = visitor.page
    look("as it opens")
    page.focus("#prompt textarea")
    for button in ("run", "step"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == button, "disabled ones are skipped"
    page.keyboard.press("Enter")
    visitor.wait_state("paused")
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
    assert visitor.run("Once upon a time") == "done"
    page.wait_for_selector("#watch-figures .js-plotly-plot")
    look("figures", "#watch-figures")
    visitor.run(" ")
    look("a mistake", "#watch-status")


def test_nothing_on_compare_stands_in_the_way_of_anybody(plainly):
    visitor, look = plainly
    page = visitor.page
    visitor.open_compare()
    page.wait_for_selector("#compare-figures .js-plotly-plot")
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


def test_a_phone_need_not_scroll_sideways(visit):
    visitor = visit(**PHONE)
    wide = "document.documentElement.scrollWidth"
    assert visitor.page.evaluate(wide) <= 390
    assert visitor.run() == "done"
    visitor.page.wait_for_selector("#watch-figures .js-plotly-plot")
    assert visitor.page.evaluate(wide) <= 390
    visitor.open_compare()
    visitor.change("race-")
    visitor.page.click("#race-more button")
    field = visitor.page.locator("#race-max_new_tokens input[type=number]")
    field.fill("8")
    field.press("Tab")
    visitor.page.click("#race")
    visitor.page.wait_for_function("DraftscopePage.stateOf('compare') === 'done'")
    visitor.page.wait_for_selector("#compare-figures .js-plotly-plot")
    assert visitor.page.evaluate(wide) <= 390


def test_on_a_phone_the_run_comes_into_sight(visit):
    visitor = visit(reduced_motion="reduce", **PHONE)
    seen = """() => {
      const { top, bottom } = document.querySelector('#tree').getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    }"""
    visitor.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert not visitor.page.evaluate(seen)
    visitor.page.evaluate("document.querySelector('#run').click()")
    visitor.wait_state("done")
    visitor.page.wait_for_function(f"({seen})()")


def test_large_type_is_for_the_whole_page(visit):
    visitor = visit(viewport={"width": 1920, "height": 1080}, reduced_motion="reduce")
    page = visitor.page
    stage = "document.querySelector('#watch-view').getBoundingClientRect().width"
    before = page.evaluate(stage)
    page.locator("#watch-view .ds-large").click()
    assert page.evaluate(stage) >= before, "the picture has the whole width"
    assert page.locator("#preset").is_hidden()
    visitor.open_compare()
    page.wait_for_selector("[data-lane]")
    large = page.locator("#compare-view .ds-large")
    assert large.get_attribute("aria-pressed") == "true"
    large.click()
    page.get_by_role("tab", name="Watch").click()
    assert page.locator("#watch-view .ds-large").get_attribute("aria-pressed") == "false"
    assert page.locator("#preset").is_visible()


def test_run_is_three_keys_away_and_the_focus_is_kept(visit):
    visitor = visit(reduced_motion="reduce")
    page, focused = visitor.page, "document.activeElement.id"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").startswith("Skip to")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('#prompt') !== null")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "run"
    page.keyboard.press("Enter")
    visitor.wait_state("done")
    page.wait_for_function(f"{focused} === 'run'")
    page.keyboard.press("Tab")
    for count in (1, 2):
        page.keyboard.press("Enter")
        page.wait_for_function(
            f"DraftscopePage.trace('watch').trim().split('\\n').length === {count + 1}"
        )
        visitor.wait_state("paused")
        page.wait_for_function(f"{focused} === 'step'")


def test_steps_are_read_out_at_the_readers_pace(visit):
    page = visit("/", reduced_motion="reduce").page
    said, pace = page.locator(".ds-spoken [role=status]"), page.get_by_label("Steps are read out")
    wide = "one => one.closest('.ds-spoken').getBoundingClientRect().width"
    assert pace.evaluate(wide) <= 1, "out of sight"
    pace.focus()
    assert pace.evaluate(wide) > 100
    pace.select_option("every step")
    timeline = page.locator("#timeline")
    timeline.press("Home")
    assert said.text_content().startswith("Step 1 of ")
    pace.select_option("never")
    timeline.press("ArrowUp")
    assert said.text_content().startswith("Step 1 of ")
    pace.select_option("every step")
    assert said.text_content().startswith("Step 2 of ")
