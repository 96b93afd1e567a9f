"""How soon the first screens of the page stand, in a browser that asks a real server; ``python -m tests.viz.measure`` prints it.

A screen stands in the frame after the one in which its last piece has come. The clock begins with the navigation.
"""

from tests.app.serving import serving

SCREENS = {
    "Watch": ("/", "#tree g[data-node]"),
    "Learn, the list": ("/?tab=learn", ".ln-card"),
    "Learn, a lesson": ("/?tab=learn&lesson=guess-and-check", ".ln-screen .ln-ask"),
    "Learn, an instrument": ("/?tab=learn&lesson=rule", ".ln-stage .ln-chart"),
    "Learn, the quiz": ("/?tab=learn&lesson=quiz&seed=1", ".ln-quiz-list > li"),
}
"""By name: the address, and what the eye waits for there."""
VISITS = 5
STOOD = """wanted => {
  const look = () => {
    const found = document.querySelector(wanted);
    if (!found || !found.getClientRects().length) { requestAnimationFrame(look); return; }
    requestAnimationFrame(() => { window.stood = performance.now(); });
  };
  look();
}"""


def first_screens(browser, visits: int = VISITS) -> dict[str, list[float]]:
    """Milliseconds from the navigation to the first screen, by its name; every visit comes with an empty cache."""
    with serving() as server:
        _stand(
            browser, server.url, *SCREENS["Watch"]
        )  # the server's own first visit is another matter
        return {
            name: [_stand(browser, server.url, *screen) for _ in range(visits)]
            for name, screen in SCREENS.items()
        }


def _stand(browser, url: str, path: str, wanted: str) -> float:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(url + path, wait_until="commit")
    page.evaluate(STOOD, wanted)
    page.wait_for_function("window.stood")
    stood = page.evaluate("window.stood")
    context.close()
    return stood
