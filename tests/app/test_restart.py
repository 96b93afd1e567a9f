"""The server is killed amid a run and started again: the page says so, and opens anew by itself."""

import os
import signal

from tests.app.serving import free_port, serving
from tests.app.visitor import Visitor


def test_a_page_outlives_its_server(browser):
    port = free_port()
    with serving(port=port) as first:
        visitor = Visitor(browser, first.url, "/?n=256&drafter=none", {})
        visitor.type_prompt("Once upon a time")
        visitor.click("run")
        visitor.page.wait_for_function(
            "Number(document.querySelector('#timeline').getAttribute('aria-valuemax')) > 2"
        )
        os.kill(first.pid, signal.SIGKILL)
        assert visitor.wait_state("error", "done") == "error"
        assert "server" in visitor.alarm.lower()
        visitor.page.evaluate("window.before = true")
    with serving(port=port):
        visitor.page.wait_for_function("!window.before && document.querySelector('#run')")
        assert visitor.run("The dog ran") == "done", visitor.alarm
    visitor.leave()
