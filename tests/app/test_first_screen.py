"""The first screen: tree, text and timeline are in view together on common screen sizes."""

import pytest

SCREENS = {
    "laptop": (1440, 900),
    "small laptop": (1366, 768),
    "phone": (390, 844),
}
STILL = {"reduced_motion": "reduce"}
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


@pytest.fixture(params=SCREENS)
def screen(request, visit):
    """The page as it opens on a screen of this size, and the size."""
    width, height = SCREENS[request.param]
    page = visit("/", viewport={"width": width, "height": height}, **STILL).page
    page.wait_for_timeout(600)
    return page, width, height


def test_the_tree_is_the_hero_of_the_first_screen(screen):
    page, width, height = screen
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


def test_a_long_chain_on_a_phone_keeps_its_root_below_the_buttons(visit):
    width, height = SCREENS["phone"]
    path = "/?preset=edit-lookup"
    page = visit(path, viewport={"width": width, "height": height}, **STILL).page
    timeline = page.locator("#timeline")
    page.wait_for_function("document.querySelector('#timeline').ariaValueMax === '8'")
    timeline.press("Home")
    long = 0
    for _ in range(8):
        assert page.evaluate(ROOT)
        long += page.evaluate("!document.querySelector('.ds-curtain').hasAttribute('hidden')")
        timeline.press("ArrowUp")
    assert long, "a chain that is longer than the canvas"


def test_nothing_jumps_between_steps(screen):
    page, width, _ = screen
    timeline, places = page.locator("#timeline"), set()
    timeline.press("Home")
    for _ in range(int(timeline.get_attribute("aria-valuemax"))):
        scale, *root, below, why = page.evaluate(PLACES)
        beside = (*root, why) if width > 600 else ()  # a phone's tree makes room beside it
        places.add((scale, below, *beside))
        timeline.press("ArrowUp")
    assert len(places) == 1


def test_large_type_enlarges_the_tree_and_keeps_the_timeline(visit):
    page = visit("/", viewport={"width": 1920, "height": 1080}, **STILL).page
    page.wait_for_timeout(300)
    before = page.evaluate(SEEN)
    page.get_by_role("button", name="Large type").click()
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(600)
    seen = page.evaluate(SEEN)
    assert seen["label"] > 1.1 * before["label"]
    assert seen["canvas"]["bottom"] - seen["canvas"]["top"] >= 0.45 * 1080
    assert seen["timeline"]["bottom"] <= 1080 and seen["run"]["bottom"] <= 1080


@pytest.mark.parametrize("size", SCREENS)
def test_the_panel_keeps_the_picture_in_view(visit, size):
    width, height = SCREENS[size]
    visitor = visit("/", viewport={"width": width, "height": height}, **STILL)
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


def test_the_arrows_bring_every_example(visit):
    page = visit("/", viewport={"width": 1000, "height": 700}, reduced_motion="reduce").page
    on, names = page.get_by_role("button", name="More examples"), set()
    inside = """() => { const strip = document.querySelector('.pg-card-strip').getBoundingClientRect();
      return [...document.querySelectorAll('.pg-card')].filter((card) => { const own = card.getBoundingClientRect();
        return own.left >= strip.left - 1 && own.right <= strip.right + 1; }).map((card) => card.dataset.card); }"""
    for _ in range(12):
        names |= set(page.evaluate(inside))
        if on.is_disabled():
            break
        on.click()
        page.wait_for_timeout(200)
    assert names == {
        card.get_attribute("data-card") for card in page.locator(".pg-card:not([hidden])").all()
    }
    page.get_by_role("button", name="Examples before these").click()
    assert not on.is_disabled()


def test_the_large_type_button_explains_itself(visit):
    page = visit("/", reduced_motion="reduce").page
    button = page.locator("#watch-view .ds-large")
    assert button.inner_text() == "Large type"
    assert "lecture hall" in button.get_attribute("title")


@pytest.mark.parametrize("width", [1000, 1200, 1280, 1920])
def test_the_sentence_above_the_tree_is_never_cut(visit, width):
    path, viewport = "/?preset=story-tree", {"width": width, "height": 860}
    page = visit(path, viewport=viewport, reduced_motion="reduce").page
    page.wait_for_function("document.querySelector('#timeline').ariaValueMax === '25'")
    sentence, timeline = page.locator(".ds-caption"), page.locator("#timeline")
    told = set()
    timeline.press("End")
    for _ in range(12):
        told.add(sentence.inner_text())
        assert sentence.evaluate("(p) => p.scrollHeight - p.clientHeight") <= 2, (
            sentence.inner_text()
        )
        timeline.press("ArrowLeft")
    assert len(told) > 6
