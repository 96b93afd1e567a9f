"""python -m tests.app.screenshots: saves pictures of the page in light, in dark, on a phone and on a
projector in the ignored folder screenshots/. With the argument readme: the two pictures of the README."""

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.app.serving import serving
from tests.app.visitor import Visitor, wait_figures
from tests.chromium import Tabs, launch

README = Path(__file__).parents[2] / "viz" / "pictures"
SCREENS = {
    "light": {"viewport": {"width": 1440, "height": 900}},
    "small": {"viewport": {"width": 1366, "height": 768}},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
    "projector": {"viewport": {"width": 1920, "height": 1080}},
}


def shoot(tabs, url: str, name: str, settings: dict, folder: Path) -> None:
    scheme = settings.get("color_scheme", "light")
    visitor = Visitor(tabs, url, f"/?__theme={scheme}", {"reduced_motion": "reduce", **settings})
    page = visitor.page

    def save(what: str) -> None:
        page.wait_for_timeout(800)
        page.screenshot(path=folder / f"{name}-{what}.png", full_page=True)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=folder / f"{name}-{what}-first-screen.png")

    if name == "projector":
        page.locator("#watch-view .ds-large").click()
    save("opening")
    visitor.run()
    wait_figures(page)
    save("watch")
    visitor.open_compare()
    wait_figures(page, "compare")
    save("compare")
    visitor.leave()


def keep(element, name: str) -> None:
    """Save a picture of the element for the README: few colours, and a lossless WebP, which takes half the bytes of a
    PNG."""
    picture = Image.open(BytesIO(element.screenshot())).convert("RGB")
    picture = picture.quantize(160, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).convert(
        "RGB"
    )
    picture.save(README / f"{name}.webp", lossless=True, quality=100, method=6)


def shoot_for_readme(tabs, url: str) -> None:
    """Save one picture of each tab's view, with the run and the race that were made earlier."""
    size = {"width": 1240, "height": 820}
    visitor = Visitor(tabs, url, "/", {"viewport": size, "reduced_motion": "reduce"})
    page = visitor.page
    keep(page.locator("#watch-view .ds-room"), "watch")
    page.set_viewport_size({"width": 1500, "height": 900})
    visitor.open_compare()
    page.wait_for_selector(".ds-outcome tbody tr")
    keep(page.locator("#compare-view"), "compare")
    visitor.leave()


def main(names: list[str], folder: Path = Path("screenshots")) -> None:
    folder.mkdir(exist_ok=True)
    with serving() as server, sync_playwright() as playwright:
        browser = launch(playwright)
        tabs = Tabs(browser)
        if names == ["readme"]:
            shoot_for_readme(tabs, server.url)
        else:
            for name in names or SCREENS:
                shoot(tabs, server.url, name, SCREENS[name], folder)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
