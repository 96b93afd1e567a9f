"""Finding a Chromium: the system's, else Playwright's own. The headless shell has no windows to draw and takes half the
time to open a page."""

import shutil
from collections.abc import Callable, Mapping
from functools import partialmethod
from types import MappingProxyType

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
SIZE = {"width": 1280, "height": 900}
FORGET = """() => { try {
  Storage.prototype.setItem = () => {};   // a late answer of the server keeps nothing
  localStorage.clear(); sessionStorage.clear();
} catch { /* it has no place of its own */ } }"""


POLLING = 50
"""Milliseconds after which a page is asked again for what a test awaits. Playwright asks in every frame, and the frames of a
page that stands still cost a tenth of a core."""


def launch(playwright):
    from playwright.sync_api import Page

    if not isinstance(Page.__dict__["wait_for_function"], partialmethod):
        Page.wait_for_function = partialmethod(Page.wait_for_function, polling=POLLING)
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return playwright.chromium.launch(executable_path=found, args=FLAGS)


class Tabs:
    """A pool of empty browser tabs. A closed tab is used again, because its process runs already and has compiled the
    scripts of a page."""

    def __init__(self, browser) -> None:
        self._browser, self._free = browser, []
        self._hears: dict = {}
        """By tab that may be used again: its listeners, by event."""

    def open(
        self,
        hears: Mapping[str, Callable] = MappingProxyType({}),
        viewport: Mapping[str, int] = SIZE,
        color_scheme: str = "light",
        reduced_motion: str = "no-preference",
        **settings,
    ):
        """Return a tab. hears: event -> its listener. settings: settings of a browser context for this tab alone."""
        ready = self._free.pop() if self._free and not settings else None
        page = ready or self._browser.new_context(**settings).new_page()
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        for event, listener in hears.items():
            page.on(event, listener)
        if not settings:
            self._hears[page] = hears
        return page

    def close(self, page) -> None:
        hears = self._hears.pop(page, None)
        if hears is None or page.is_closed():
            page.context.close()
            return
        page.evaluate(FORGET)
        page.goto("about:blank")
        for event, listener in hears.items():
            page.remove_listener(event, listener)
        page.unroute_all()
        self._free.append(page)
