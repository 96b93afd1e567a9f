"""The first screen: tree, text and timeline are in view together on common screen sizes."""

import pytest

SCREENS = {
    "laptop": (1440, 900, False),
    "small laptop": (1366, 768, False),
    "hall": (1920, 1080, True),
}
SEEN = """() => {
  const box = (what) => { const { top, bottom, left, right } = document.querySelector(what).getBoundingClientRect(); return {top, bottom, left, right}; };
  const text = document.querySelector('#text'), style = getComputedStyle(text), zoom = text.currentCSSZoom || 1;
  const seen = box('#text'), low = Math.min(seen.bottom, innerHeight);
  const tree = [...document.querySelectorAll('#tree g[data-node] .ds-shape')].map((shape) => shape.getBoundingClientRect());
  return {
    high: innerHeight, canvas: box('#tree .ds-canvas'), card: box('.ds-tree-card'), text: seen, timeline: box('#timeline'), prompt: box('#prompt textarea'), run: box('#run'),
    lines: (low - seen.top - 2 * parseFloat(style.borderTopWidth) * zoom) / (parseFloat(style.lineHeight) * zoom),
    newest: (({ top, bottom }) => top >= seen.top && bottom <= seen.bottom)([...text.querySelectorAll('[data-now]')].at(-1).getBoundingClientRect()),
    part: text.scrollTop && (text.scrollTop - 2) / parseFloat(style.lineHeight) % 1,
    label: Math.max(...[...document.querySelectorAll('#tree g[data-node] .ds-label')].map((label) => parseFloat(label.getAttribute('font-size')) * zoom * label.getCTM().a)),
    used: (Math.max(...tree.map((one) => one.right)) - Math.min(...tree.map((one) => one.left))) / (box('#tree .ds-canvas').right - box('#tree .ds-canvas').left),
    masthead: document.querySelector('.pg-masthead').getBoundingClientRect().height,
    cut: [...document.querySelectorAll('.pg-card')].filter((card) => {
      const strip = document.querySelector('.pg-card-strip').getBoundingClientRect(), own = card.getBoundingClientRect();
      return own.width && own.left < strip.right - 2 && own.right > strip.left + 2 && (own.right > strip.right + 1 || own.left < strip.left - 1);
    }).length,
    table: (() => { const card = document.querySelector('#inspector'); return [card.scrollHeight - card.clientHeight, card.scrollWidth - card.clientWidth]; })(),
  };
}"""


@pytest.mark.parametrize("screen", SCREENS)
def test_tree_text_and_timeline_are_in_view_together(visit, screen):
    width, height, large = SCREENS[screen]
    page = visit("/", viewport={"width": width, "height": height}, reduced_motion="reduce").page
    if large:
        page.get_by_role("button", name="Large type").click()
        page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(600)
    seen = page.evaluate(SEEN)
    assert page.evaluate("scrollY") == 0
    assert 0 <= seen["canvas"]["top"] and seen["canvas"]["bottom"] <= height
    assert seen["lines"] >= 3, "lines of text inside the window"
    assert seen["newest"], "the step's own tokens"
    assert min(seen["part"], 1 - seen["part"]) < 0.05, "no line is cut"
    assert seen["text"]["bottom"] <= height + 1 and seen["timeline"]["bottom"] <= height
    both = seen["card"]["bottom"] - seen["card"]["top"]
    both += seen["text"]["bottom"] - seen["text"]["top"]
    assert both >= height / 2, "tree and text have at least half of the window"
    assert seen["masthead"] <= 48, "one row"
    assert seen["cut"] == 0, "no example is cut"
    assert seen["used"] >= 0.6, "the tree uses the width"
    assert seen["label"] >= 12
    assert max(seen["table"]) <= 1, "the explanation is not cut"
    for control in ("prompt", "run"):
        assert seen[control]["bottom"] <= height, "within reach"


@pytest.mark.journey
def test_a_phone_has_tree_before_controls_and_nothing_cut(visit):
    page = visit("/", viewport={"width": 390, "height": 844}, reduced_motion="reduce").page
    page.wait_for_timeout(600)
    seen = page.evaluate(SEEN)
    assert seen["cut"] == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert seen["canvas"]["top"] < 844 and seen["canvas"]["top"] < seen["prompt"]["top"]


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
    assert names == {card.get_attribute("data-card") for card in page.locator(".pg-card").all()}
    page.get_by_role("button", name="Examples before these").click()
    assert not on.is_disabled()


def test_the_large_type_button_explains_itself(visit):
    page = visit("/", reduced_motion="reduce").page
    button = page.locator("#watch-view .ds-large")
    assert button.inner_text() == "Large type"
    assert "lecture hall" in button.get_attribute("title")


@pytest.mark.parametrize("width", [1000, 1200, 1280, 1920])
def test_the_sentence_above_the_tree_is_never_cut(visit, width):
    page = visit("/", viewport={"width": width, "height": 860}, reduced_motion="reduce").page
    sentence, timeline = page.locator(".ds-caption"), page.locator("#timeline")
    told = set()
    for _ in range(12):
        told.add(sentence.inner_text())
        assert sentence.evaluate("(p) => p.scrollHeight - p.clientHeight") <= 2, (
            sentence.inner_text()
        )
        timeline.press("ArrowLeft")
    assert len(told) > 6
