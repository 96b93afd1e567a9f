"""The guided tour: it starts only on request, says when the reader has done what it asks, and is never in the way."""

import pytest

from app.words import TOUR
from tests.axe import violations

STOPS = [stop["title"] for stop in TOUR["stops"]]
FREE = """(selector) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  const seen = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return seen !== null && !seen.closest('.pg-tour-layer');
}"""
INSIDE = """() => {
  const box = document.querySelector('.pg-tour').getBoundingClientRect();
  return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
}"""
AT_REST = """() => new Promise((answer) => {
  const before = scrollY;
  setTimeout(() => answer(scrollY === before), 400);
})"""
ASKED = [
    "#text .ds-token:last-child",
    "#tree [data-root]",
    "#inspector th .ds-term",
    "#timeline",
    "#drafter input",
    "#run",
]


def begin(visitor):
    visitor.page.click("#take-tour")
    return at_stop(visitor, 0)


def at_stop(visitor, number: int):
    visitor.page.get_by_role("dialog", name=STOPS[number]).wait_for()
    return visitor.page.locator(".pg-tour")


def led_to(visitor, number: int) -> None:
    """Go on to this stop, once the tour has seen that the reader has done the task of the previous stop. The stop's
    card must cover nothing that it points to."""
    page = visitor.page
    page.locator(".pg-tour[data-done]").get_by_text(TOUR["done"]).wait_for()
    at_stop(visitor, number - 1).locator("[data-tour=next]").press("Enter")
    at_stop(visitor, number)
    visitor.page.wait_for_function(FREE, arg=ASKED[number])


def drag(page, selector: str):
    """Drag an element from its left edge to its middle, once the page is at rest: a tour stop scrolls to it."""
    page.wait_for_function(AT_REST)
    box = page.locator(selector).bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
    page.mouse.up()


@pytest.mark.journey
def test_it_says_when_the_reader_has_done_what_it_asks(visit):
    visitor = visit()
    page = visitor.page
    assert page.locator(".pg-tour").is_hidden(), "nobody asked for it"
    visitor.open_compare()
    begin(visitor)
    assert page.locator("#text").is_visible(), "it begins on Watch"
    page.locator("#text [data-status=accepted]").first.click()
    led_to(visitor, 1)
    page.locator("#tree [data-node][data-status=rejected]").first.click()
    led_to(visitor, 2)
    assert "rejected" in page.inner_text("#inspector")
    page.hover("#inspector th .ds-term")
    led_to(visitor, 3)
    drag(page, "#timeline svg")
    led_to(visitor, 4)
    page.click("#drafter input")
    page.locator("#drafter [role=listbox]").wait_for()
    page.keyboard.press("Escape")
    page.locator("#drafter [role=listbox]").wait_for(state="hidden")
    assert page.locator(".pg-tour").is_visible(), "Escape closes an open list first"
    visitor.pick("chain")
    led_to(visitor, 5)
    assert visitor.run() == "done"
    page.locator(".pg-tour[data-done] [data-tour=next]").press("Enter")
    end = page.get_by_role("dialog", name=TOUR["farewell"]["title"])
    end.get_by_role("button", name="Close").click()
    assert end.is_hidden()
    assert page.evaluate("document.activeElement.id") == "take-tour"
    page.reload()
    page.wait_for_selector("#take-tour")
    assert page.locator("#no-tour").count() == 0, "it invites once"


def test_the_keyboard_walks_it_too(visit):
    page = (visitor := visit()).page
    page.focus("#take-tour")
    page.keyboard.press("Enter")
    at_stop(visitor, 0)
    assert page.evaluate("document.activeElement.matches('.pg-tour')")

    def go_there():
        page.get_by_role("dialog").get_by_role("button", name="Show me where").press("Enter")

    go_there()
    page.keyboard.press("Enter")
    led_to(visitor, 1)
    go_there()
    for key in ["ArrowRight", "ArrowDown"] * 30:  # along a branch, and to the next one
        if page.evaluate("document.activeElement.dataset.status") == "rejected":
            break
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    led_to(visitor, 2)
    go_there()
    led_to(visitor, 3)
    go_there()
    page.keyboard.press("Home")
    page.keyboard.press("End")  # one of the two keys changes the step
    led_to(visitor, 4)
    page.keyboard.press("Escape")
    assert page.locator(".pg-tour").is_hidden()
    assert page.evaluate("document.activeElement.id") == "change", "of the panel, which closed, too"


@pytest.mark.parametrize("screen", ["desk", "phone", "projector"])
def test_it_hides_nothing_it_asks_for(visit, screen):
    size = (390, 844) if screen == "phone" else (1280, 860)
    visitor = visit(viewport=dict(zip(("width", "height"), size)))
    page = visitor.page
    if screen == "projector":
        page.locator("#watch-view .ds-large").click()
    card = begin(visitor)
    for number, asked in enumerate(ASKED):
        at_stop(visitor, number)
        page.wait_for_function(INSIDE)
        page.wait_for_function(FREE, arg=asked)
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        tops = "all => new Set(all.map((button) => button.offsetTop)).size"
        assert page.locator(".pg-tour-buttons button:visible").evaluate_all(tops) == 1, "in a line"
        last = number == len(ASKED) - 1
        card.get_by_role("button", name="Done" if last else "Next").click()
    card.get_by_role("button", name="Back").click()
    at_stop(visitor, 5)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_in_it_stands_in_the_way_of_anybody(visit, scheme):
    visitor = visit(f"/?n=8&__theme={scheme}", color_scheme=scheme)
    assert visitor.page.locator("#no-tour").is_visible()
    card = begin(visitor)
    assert violations(visitor.page) == []
    card.get_by_role("button", name="Next").click()
    at_stop(visitor, 1)
    assert violations(visitor.page) == []
