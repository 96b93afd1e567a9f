"""What a server costs that nobody visits, and how soon a click is answered: python -m tests.idle

Prints, for this page's queue and for gradio's own setting of it, the seconds of computing until the server is ready and
the memory that it then takes (both follow DRAFTSCOPE_AHEAD), the share of one core over --seconds, and
the median milliseconds from a click on Run in a real browser to the first step on screen, and the steps a second that
appear there. The drafter is *none*, so that little of that time is the engine's.
"""

import argparse
import json
import os
import time
from statistics import median
from urllib.parse import urlencode

import httpx
from playwright.sync_api import sync_playwright

from tests.app.serving import Server, serving
from tests.app.visitor import MOVING, PROMPT, Visitor
from tests.app.wire import Wire
from tests.chromium import Tabs, launch
from tests.load import resident

GRADIO_S = """
import runpy
from app import idle
idle.rest = lambda page: None
runpy.run_path("app.py", run_name="__main__")
"""
PROGRAMS = {"this page": ("app.py",), "gradio's own setting": ("-c", GRADIO_S)}
WATCH_FOR = """prompt => {
  window.answered = null;
  document.querySelector("#run").addEventListener("click", (click) => {
    const look = () => {
      const trace = DraftscopePage.trace("watch") || "";
      const here = trace.includes(JSON.stringify(prompt)) && trace.includes('"kind":"step"');
      if (!here || !document.querySelector("#timeline [data-step]")) return requestAnimationFrame(look);
      requestAnimationFrame(() => { window.answered = performance.now() - click.timeStamp; });
    };
    look();
  }, { capture: true, once: true });
}"""


STEPS = """() => {
  const line = document.querySelector('#timeline');
  window.come = [];
  new MutationObserver(() => window.come.push(performance.now()))
    .observe(line, {attributes: true, attributeFilter: ['aria-valuemax']});
}"""
"""Note when the screen shows another step."""


def computed(pid: int) -> float:
    """Return the seconds of processor time that a process has used so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def rest(server: Server) -> None:
    """Wait until every drafter has been tried and the figures' library is there."""
    while httpx.get(f"{server.url}/health").json()["status"] != "ready":
        time.sleep(0.5)
    time.sleep(8)


def idle_share(server: Server, seconds: float) -> float:
    """Return the share of one core that is used while no page is open and the models are loaded."""
    before, began = computed(server.pid), time.monotonic()
    time.sleep(seconds)
    return (computed(server.pid) - before) / (time.monotonic() - began)


def clicked(tabs, server: Server, clicks: int) -> list[float]:
    """Return the milliseconds from each click to its first step on the screen."""
    link = "/?" + urlencode({"prompt": PROMPT, "n": 4, "drafter": "none"})
    visitor, found = Visitor(tabs, server.url, link, {}), []
    visitor.page.wait_for_function(
        "p => document.querySelector('#prompt textarea')?.value === p", arg=PROMPT
    )
    for number in range(clicks + 1):
        prompt = f"There were {number} dogs"
        visitor.type_prompt(prompt)
        visitor.page.wait_for_timeout(300)
        visitor.page.evaluate(WATCH_FOR, prompt)
        visitor.click("run")
        visitor.page.wait_for_function("window.answered !== null")
        found.append(visitor.page.evaluate("window.answered"))
        visitor.wait_state("done")
    visitor.leave()
    return found[1:]  # the first one warms up


def shown(tabs, server: Server) -> float:
    """Return the steps a second that appear on the screen during a run of plain decoding."""
    link = "/?" + urlencode({"prompt": PROMPT, "n": 60, "drafter": "none"})
    visitor = Visitor(tabs, server.url, link, MOVING)
    visitor.page.evaluate(STEPS)
    visitor.run()
    times = visitor.page.evaluate("window.come")
    visitor.leave()
    return 1000 * (len(times) - 1) / (times[-1] - times[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.idle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clicks", type=int, default=15)
    given = parser.parse_args()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        tabs = Tabs(browser)
        for name, program in PROGRAMS.items():
            with serving(program=program) as server:
                wire = Wire(server.url)
                wire.ready()
                wire.leave()
                rest(server)
                start, memory = computed(server.pid), resident(server.pid)
                share = idle_share(server, given.seconds)
                times = clicked(tabs, server, given.clicks)
                steps = shown(tabs, server)
            numbers = {
                "seconds_of_start": round(start, 1),
                "memory_mb": round(memory),
                "idle_share_of_a_core": round(share, 4),
                "click_to_first_step_ms": round(median(times), 1),
                "clicks": len(times),
                "steps_a_second_on_screen": round(steps, 1),
            }
            print(json.dumps({name: numbers}), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
