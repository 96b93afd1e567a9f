"""python -m tests.viz.measure: prints how fast Chromium draws, and how soon the page's first screens are drawn.

Scrubbing is timed with style and layout forced, so that each figure is the page's cost of one step. With --first-token,
prints how soon the real chat model answers instead.
"""

import statistics
import sys
from pathlib import Path

from tests.app.first_screens import cpu, first_screens
from tests.app.first_token import AIMS, first_tokens
from tests.chromium import launch
from tests.viz.builder import Toy
from viz.bundle import bundle_css, bundle_js

PROBES = Path(__file__).with_suffix(".js")


def row(name: str, values: list[float]) -> str:
    ordered = sorted(values)
    return (
        f"{name:<46} median {statistics.median(ordered):6.1f} ms   "
        f"95 % {ordered[int(len(ordered) * 0.95)]:6.1f} ms   most {ordered[-1]:6.1f} ms"
    )


def tell_first_tokens() -> None:
    for drafter, states in first_tokens().items():
        for state, seconds in states.items():
            times = ", ".join(f"{taken:.2f}" for taken in seconds)
            print(f"{drafter}, {state}: first token after {times} s (aim {AIMS[state]:.0f} s)")


def main() -> None:
    from playwright.sync_api import sync_playwright

    wide = Toy(steps=200, budget=64, depth=8, width=4).ndjson()
    widest = Toy(steps=200, budget=256, depth=10, width=4).ndjson()
    short = Toy(steps=100, budget=64, depth=8, width=4).ndjson()
    lanes = {str(i): Toy(steps=200, budget=64, depth=8, width=4, seed=i).ndjson() for i in range(4)}
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(300_000)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.set_content("<!DOCTYPE html><title>t</title><body></body>")
        page.add_style_tag(content=bundle_css())
        page.add_script_tag(content=bundle_js() + PROBES.read_text("utf-8"))
        for name, text in (("64", wide), ("256", widest)):
            before = cpu(session)
            got = page.evaluate("text => measure.scrub(text)", text)
            spent = (cpu(session) - before) / 200
            print(
                f"{f'first drawing, 200 steps of {name} nodes':<46}        {got['first']:6.1f} ms"
            )
            print(row(f"a step of scrubbing, 200 steps of {name} nodes", got["taken"]))
            print(f"{'  of which processor time, on average':<46}        {spent:6.1f} ms")
        for rate, pause in (("20 steps a second", 50), ("all steps at once", 0)):
            got = page.evaluate("given => measure.live(given)", [short, pause])
            print(
                f"live, 64 nodes, {rate}: {got['seen']} of 100 steps drawn, "
                f"{got['seen'] / got['seconds']:.1f} a second"
            )
            if pause:
                print(row("  from feed to drawing", got["lags"]))
        before = cpu(session)
        taken = page.evaluate("texts => measure.lanes(texts)", lanes)
        print(row("a moment of a race, 4 lanes of 64 nodes", taken))
        spent = (cpu(session) - before) / len(taken)
        print(f"{'  of which processor time, on average':<46}        {spent:6.1f} ms")
        screens, rests = first_screens(browser)
        for name, stood in screens.items():
            print(row(f"first screen: {name}", stood))
        for name, share in rests.items():
            print(f"{f'left alone: {name}':<46} {share:6.2%} of a core, on its main thread")
        browser.close()


if __name__ == "__main__":
    tell_first_tokens() if "--first-token" in sys.argv[1:] else main()
