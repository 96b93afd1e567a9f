"""Every screen of every lesson, from the file that a visitor saves: no wider than a phone, and nothing for axe to find."""

import pytest

from app.lessons import lesson_file
from presets.lessons import shelf
from tests.axe import violations

PHONE = {"width": 390, "height": 844}
NAMES = [entry["name"] for entry in shelf()]


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_nothing_stands_in_the_way_on_any_screen(browser, tmp_path, number):
    """Every second lesson in dark, all on a phone and without motion."""
    file = tmp_path / "lesson.html"
    file.write_text(lesson_file(NAMES[number]), "utf-8")
    scheme = ("light", "dark")[number % 2]
    context = browser.new_context(viewport=PHONE, color_scheme=scheme, reduced_motion="reduce")
    page, failures, asked = context.new_page(), [], []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    following = page.get_by_role("button", name="Next", exact=True)
    while True:
        covered = page.get_by_role("button", name="Show it now")
        if covered.is_visible():
            covered.click()
        page.wait_for_timeout(100)
        screen = page.get_attribute(".ln-screen:not([hidden])", "data-screen")
        assert violations(page) == [], screen
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], screen
        if not following.is_visible():
            break
        following.click()
    context.close()
    assert failures == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
