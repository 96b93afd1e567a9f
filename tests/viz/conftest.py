"""Pages for the drawing tests. They report requests, dialogs and errors."""

import time

import pytest

from tests.viz.modules import exposed
from tests.viz.tables import results
from viz.bundle import WEB, bundle_css
from viz.export import page as exported

SMALLEST = """Math.min(...[...document.querySelectorAll('.ds-tree .ds-label')].filter((one) => one.getClientRects().length)
  .map((one) => parseFloat(one.getAttribute('font-size')) * one.getCTM().a))"""
"""The size of the smallest word of a tree, in px."""


def until(page, condition: str, seconds: float = 60) -> None:
    """Wait until a JavaScript expression is true. (Playwright's own way needs a lax CSP.)"""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.05)


class Watched:
    """A page, and a record of everything that must not happen on it."""

    def __init__(self, tabs, **options) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        hears = {
            "pageerror": lambda error: self.errors.append(str(error)),
            "dialog": lambda dialog: (self.errors.append("dialog"), dialog.dismiss()),
            "console": self._console,
            "request": lambda request: self.requests.append(request.url),
        }
        self.page = tabs.open(hears, **options)
        self.page.set_default_timeout(60_000)

    def _console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def check(self) -> None:
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith("file:")] == []


@pytest.fixture
def watched(tabs):
    """Return watched(**options of the tab), which opens a fresh page; the page is checked when the test is over."""
    opened = []

    def make(**options) -> Watched:
        opened.append(Watched(tabs, **options))
        return opened[-1]

    yield make
    for seen in opened:
        tabs.close(seen.page)
        seen.check()


@pytest.fixture
def replay(watched, tmp_path):
    """Return replay(ndjson), which opens the exported page from its file, paused at step 0."""

    def open_(text: str, title: str = "Draftscope", still: bool = True, **options):
        file = tmp_path / "out.html"
        file.write_text(exported(text, title), "utf-8")
        page = watched(**options).page
        page.goto(file.as_uri())
        if still:
            page.evaluate("view.pause(); view.goto(0)")
        return page

    return open_


@pytest.fixture
def replay_race(watched, tmp_path):
    """Return replay_race(ndjson), which opens the exported page of a race from its file, at its end."""

    def open_(text: str, **options):
        file = tmp_path / "race.html"
        file.write_text(exported(text, "Draftscope", race=True), "utf-8")
        page = watched(**options).page
        page.goto(file.as_uri())
        page.evaluate("view.seek(1e9)")
        return page

    return open_


@pytest.fixture(scope="module")
def script(browser):
    """Yield a page that holds the drawing code and nothing else, for tests of its functions."""
    page = browser.new_page()
    page.set_content(
        "<!DOCTYPE html><html lang='en'><head><title>t</title></head><body></body></html>"
    )
    page.add_style_tag(content=bundle_css())
    page.add_script_tag(content=exposed("Draftscope", WEB))
    yield page
    page.close()


@pytest.fixture(scope="module")
def given(script, request):
    """Return case -> value of its expression, for the CASES of the test file."""
    return results(script, request.module.CASES)
