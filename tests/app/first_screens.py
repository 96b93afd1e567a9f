"""How soon a browser draws the page's first screens from a real server; ``python -m tests.viz.measure`` prints it.

A screen counts as drawn in the frame after its last element appears. The clock starts with the navigation. Afterwards the
page is left alone, and what its main thread computes then is counted.
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
VISITS, ARRIVED, REST = 5, 5_000, 10_000
"""Visits of each screen; milliseconds after which a page is left alone, and for how long it is then watched."""
STOOD = """wanted => {
  const look = () => {
    const found = document.querySelector(wanted);
    if (!found || !found.getClientRects().length) { requestAnimationFrame(look); return; }
    requestAnimationFrame(() => { window.stood = performance.now(); });
  };
  look();
}"""


def first_screens(browser) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return screen -> milliseconds from the navigation until it is drawn, for each visit, and screen -> the share of
    the time for which an open page that nobody touches keeps its main thread busy. Every visit begins with an empty
    cache."""
    with serving() as server:
        _stand(browser, server.url, *SCREENS["Watch"])  # the server's first visit does not count
        stood = {
            name: [_stand(browser, server.url, *screen) for _ in range(VISITS)]
            for name, screen in SCREENS.items()
        }
        rests = {
            name: _stand(browser, server.url, *screen, at_rest) for name, screen in SCREENS.items()
        }
        return stood, rests


def at_rest(page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.wait_for_timeout(ARRIVED)
    before = cpu(session)
    page.wait_for_timeout(REST)
    return (cpu(session) - before) / REST


def cpu(session) -> float:
    """Return the processor time of the page's main thread so far, in ms, which a busy machine does not distort."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(entry["value"] for entry in metrics if entry["name"] == "TaskDuration")


def _stand(
    browser, url: str, path: str, wanted: str, then=lambda page: page.evaluate("window.stood")
) -> float:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(url + path, wait_until="commit")
    page.evaluate(STOOD, wanted)
    page.wait_for_function("window.stood")
    measured = then(page)
    context.close()
    return measured
