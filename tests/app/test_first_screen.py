"""The first screen: tree, text and timeline are in view together on common screen sizes."""

import pytest

SCREENS = {
    "laptop": (1440, 900),
    "small laptop": (1366, 768),
    "phone": (390, 844),
}
SEEN = """() => {
  const box = (what) => { const { top, bottom, left, right } = document.querySelector(what).getBoundingClientRect(); return {top, bottom, left, right}; };
  const all = (what) => [...document.querySelectorAll(what)].filter((one) => one.getClientRects().length);
  const text = document.querySelector('#text'), style = getComputedStyle(text), zoom = text.currentCSSZoom || 1;
  const seen = box('#text'), low = Math.min(seen.bottom, innerHeight), canvas = box('#tree .ds-canvas');
  const tree = all('#tree .ds-shape').map((shape) => shape.getBoundingClientRect());
  return {
    canvas, legend: box('.ds-legend'), low: Math.max(...tree.map((one) => one.bottom)), text: seen, timeline: box('#timeline'), prompt: box('#prompt textarea'), run: box('#run'), change: box('#change'),
    lines: (low - seen.top - 2 * parseFloat(style.borderTopWidth) * zoom) / (parseFloat(style.lineHeight) * zoom),
    newest: (({ top, bottom }) => top >= seen.top && bottom <= seen.bottom)([...text.querySelectorAll('[data-now]')].at(-1).getBoundingClientRect()),
    part: text.scrollTop && (text.scrollTop - 2) / parseFloat(style.lineHeight) % 1,
    label: Math.min(...all('#tree .ds-label').map((label) => parseFloat(label.getAttribute('font-size')) * zoom * label.getCTM().a)),
    small: all('.tabitem *, .pg-masthead *').filter((one) => one.childNodes.length === 1 && one.firstChild.nodeType === 3 && one.firstChild.data.trim()
      && one.getBoundingClientRect().top < innerHeight && parseFloat(getComputedStyle(one).fontSize) * (one.getCTM ? one.getCTM().a : 1) < 12).map((one) => one.outerHTML.slice(0, 90)),
    used: (Math.max(...tree.map((one) => one.right)) - Math.min(...tree.map((one) => one.left))) / (canvas.right - canvas.left),
    inside: tree.every((one) => one.left >= canvas.left && one.right <= canvas.right && one.top >= canvas.top && one.bottom <= canvas.bottom),
    masthead: document.querySelector('.pg-masthead').getBoundingClientRect().height,
    wide: document.documentElement.scrollWidth,
    head: Math.max(...all('.pg-masthead *').map((one) => one.getBoundingClientRect().right)),
    cut: all('.pg-card').filter((card) => {
      const strip = document.querySelector('.pg-card-strip').getBoundingClientRect(), own = card.getBoundingClientRect();
      return own.left < strip.right - 2 && own.right > strip.left + 2 && (own.right > strip.right + 1 || own.left < strip.left - 1);
    }).length,
    clipped: all('.ds-proof, .ds-caption, .pg-offer .pg-note, .ds-where, #inspector, .pg-say, .pg-buttons button, [role=tab]')
      .filter((one) => one.scrollHeight - one.clientHeight > 2 || one.scrollWidth - one.clientWidth > 1).map((one) => one.outerHTML.slice(0, 90)),
  };
}"""


def hero_of_the_first_screen(page, width: int, height: int) -> None:
    seen = page.evaluate(SEEN)
    assert page.evaluate("scrollY") == 0 and max(seen["wide"], seen["head"]) <= width
    high = seen["canvas"]["bottom"] - seen["canvas"]["top"]
    assert high >= 0.45 * height
    assert seen["canvas"]["top"] >= 0 and seen["canvas"]["bottom"] <= height
    assert seen["inside"], "nothing of the tree is cut"
    assert seen["label"] >= 12 and seen["small"] == []
    for control in ("prompt", "run", "change"):
        assert seen[control]["bottom"] <= height, "within reach"
    assert seen["cut"] == 0, "no example is cut"
    assert seen["clipped"] == [], "no text is cut"
    if width < 600:
        for tab in ("Watch", "Compare", "Methods", "Learn"):
            assert page.get_by_role("tab", name=tab, exact=True).is_visible()
        return
    assert seen["low"] <= seen["legend"]["top"] + 1 and seen["legend"]["bottom"] <= height
    assert seen["used"] >= 0.6, "the tree uses the width"
    assert round(seen["lines"], 1) >= 3, "lines of text inside the window"
    assert seen["newest"], "the step's own tokens"
    assert min(seen["part"], 1 - seen["part"]) < 0.05, "no line is cut"
    assert seen["text"]["bottom"] <= height + 1 and seen["timeline"]["bottom"] <= height + 1
    assert seen["masthead"] <= 48, "one row"


PLACES = """() => {
  const at = (what) => { const { top, left, width, height } = document.querySelector(what).getBoundingClientRect(); return [top, left, width, height].map(Math.round); };
  const root = document.querySelector('#tree [data-root]').getCTM();
  return [...[root.a, root.e, root.f].map((number) => number.toFixed(2)), ['#tree', '#text', '#timeline', '#run'].map(at).join(), ['#inspector', '.ds-legend', '.ds-foot'].map(at).join()];
}"""
ROOT = """() => {
  scrollTo(0, 0);
  const root = document.querySelector('#tree [data-root]'), { top, bottom, left, right } = root.getBoundingClientRect();
  const canvas = document.querySelector('#tree .ds-canvas').getBoundingClientRect();
  return root.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2)) && bottom <= canvas.bottom;
}"""


def nothing_jumps_between_steps(page, width: int) -> None:
    timeline, places = page.locator("#timeline"), set()
    timeline.press("Home")
    for _ in range(int(timeline.get_attribute("aria-valuemax"))):
        scale, *root, below, why = page.evaluate(PLACES)
        beside = (*root, why) if width > 600 else ()  # a phone's tree makes room beside it
        places.add((scale, below, *beside))
        timeline.press("ArrowUp")
    assert len(places) == 1


def the_panel_keeps_the_picture_in_view(visitor, width: int, height: int) -> None:
    page, button = visitor.page, visitor.page.locator("#change")
    assert page.locator("#drafter").is_hidden() and page.locator("#temperature").is_hidden()
    visitor.change()
    page.locator("#drafter input").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#advanced button")
    page.locator("#seed input").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    top, bottom = page.evaluate(
        "(({ top, bottom }) => [top, bottom])(document.querySelector('#tree').getBoundingClientRect())"
    )
    assert top >= -2 and min(bottom, height) - top >= 0.25 * height
    page.locator("#drafter input").focus()
    page.keyboard.press("Escape")
    assert button.get_attribute("aria-expanded") == "false"
    assert page.evaluate("document.activeElement.id") == "change"
    assert page.locator("#drafter").is_hidden()


@pytest.mark.parametrize("size", SCREENS)
def test_the_tree_is_the_hero_and_stays_where_it_is(visit, size):
    width, height = SCREENS[size]
    visitor = visit("/", viewport={"width": width, "height": height})
    page = visitor.page
    page.wait_for_timeout(600)
    hero_of_the_first_screen(page, width, height)
    nothing_jumps_between_steps(page, width)
    the_panel_keeps_the_picture_in_view(visitor, width, height)


def steps_of(visitor, example: str, steps: int) -> None:
    visitor.go(f"/?preset={example}")
    visitor.page.wait_for_function(
        "steps => document.querySelector('#timeline').ariaValueMax === steps", arg=str(steps)
    )


def test_a_long_chain_keeps_its_root_in_sight_and_no_sentence_is_cut(visit):
    width, height = SCREENS["phone"]
    visitor = visit("/", viewport={"width": width, "height": height})
    page = visitor.page
    steps_of(visitor, "edit-lookup", 8)
    timeline, long = page.locator("#timeline"), 0
    timeline.press("Home")
    for _ in range(8):
        assert page.evaluate(ROOT)
        long += page.evaluate("!document.querySelector('.ds-curtain').hasAttribute('hidden')")
        timeline.press("ArrowUp")
    assert long, "a chain that is longer than the canvas"
    steps_of(visitor, "story-tree", 25)
    sentence = page.locator(".ds-caption")
    for width in (1000, 1200, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 860})
        page.wait_for_timeout(300)
        timeline.press("End")
        told = set()
        for _ in range(12):
            told.add(sentence.inner_text())
            cut = sentence.evaluate("(p) => p.scrollHeight - p.clientHeight")
            assert cut <= 2, sentence.inner_text()
            timeline.press("ArrowLeft")
        assert len(told) > 6
    large = page.get_by_role("button", name="Large type")
    for width, height in ((1366, 768), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(300)
        before = page.evaluate(SEEN)
        large.click()
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(600)
        seen = page.evaluate(SEEN)
        assert seen["label"] > 1.1 * before["label"], "large type enlarges the tree"
        if width == 1366:
            large.click()
    assert seen["canvas"]["bottom"] - seen["canvas"]["top"] >= 0.45 * 1080
    assert seen["timeline"]["bottom"] <= 1080 and seen["run"]["bottom"] <= 1080
