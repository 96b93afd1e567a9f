"""How soon a browser draws the page's first screens from a real server; ``python -m tests.viz.measure`` prints it.

A screen counts as drawn in the frame after its last element appears. The clock starts with the navigation.
"""

from tests.app.serving import serving

SCREENS = {
    "Watch": ("/", "#tree g[data-node]"),
    "Learn, the list": ("/?tab=learn", ".ln-card"),
    "Learn, a lesson": ("/?tab=learn&lesson=guess-and-check", ".ln-screen .ln-ask"),
    "Learn, an instrument": ("/?tab=learn&lesson=rule", ".ln-stage .ln-chart"),
    "Learn, the quiz": ("/?tab=learn&lesson=quiz&seed=1", ".ln-quiz-list > li"),
}
"""By screen: the address, and the selector of the element to wait for."""
VISITS = 5
STOOD = """wanted => {
  const look = () => {
    const found = document.querySelector(wanted);
    if (!found || !found.getClientRects().length) { requestAnimationFrame(look); return; }
    requestAnimationFrame(() => { window.stood = performance.now(); });
  };
  look();
}"""


def first_screens(browser) -> dict[str, list[float]]:
    """Return screen -> milliseconds from the navigation until it is drawn, for each visit. Every visit begins with an
    empty cache."""
    with serving() as server:
        _stand(browser, server.url, *SCREENS["Watch"])  # the server's first visit does not count
        return {
            name: [_stand(browser, server.url, *screen) for _ in range(VISITS)]
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
