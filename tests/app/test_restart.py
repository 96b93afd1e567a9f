"""The server is killed during runs and started again: the pages say so and go on, and the files that it kept
on the disk are intact."""

import json
import os
import signal
from urllib.parse import urlencode

import pytest

from engine.fast.cpu.runtime import core
from tests.app.serving import free_port, serving
from tests.app.sharing import VISITORS
from tests.app.visitor import ENDLESS, Visitor

LINK = "/?" + urlencode({"prompt": ENDLESS, "n": 256, "drafter": "none"})
SET = "prompt => document.querySelector('#prompt textarea')?.value === prompt"
UNDER_WAY = "Number(document.querySelector('#timeline').getAttribute('aria-valuemax')) > 2"


def check_whole(folder) -> list[str]:
    """Open every file to which the server gave its final name before it was killed. Returns the names."""
    files = [path for path in folder.rglob("*") if path.suffix in (".json", ".blob")]
    for path in files:
        if path.suffix == ".json":
            assert isinstance(json.loads(path.read_bytes()), dict)
        else:
            assert core().import_model(path.read_bytes(), "CPU", {}) is not None
    return [path.name for path in files]


@pytest.mark.exhaustive
def test_pages_outlive_their_server(tabs, tmp_path):
    port, kept = free_port(), {"DRAFTSCOPE_CACHE": str(tmp_path)}
    writing = {
        "DRAFTSCOPE_AHEAD": "all",
        "DRAFTSCOPE_MEASURE": "1",
        **VISITORS,
    }  # it writes files while it is killed
    with serving(port=port, **kept, **writing) as first:
        runs, waits = [Visitor(tabs, first.url, LINK, {}) for _ in range(2)]
        for visitor in (waits, runs):
            visitor.page.wait_for_function(SET, arg=ENDLESS)
        waits.click("step")
        waits.wait_state("paused")
        runs.click("run")
        runs.page.wait_for_function(UNDER_WAY)
        assert runs.state == "running"
        os.kill(first.pid, signal.SIGKILL)
        for visitor in (runs, waits):
            assert visitor.wait_state("error", "done") == "error"
            assert "server cannot be reached" in visitor.alarm
            visitor.page.evaluate("window.before = true")
    assert check_whole(tmp_path)
    with serving(port=port, **kept):
        for visitor in (runs, waits):
            visitor.page.wait_for_function("!window.before && document.querySelector('#run')")
            visitor.page.wait_for_function(SET, arg=ENDLESS)
            visitor.page.wait_for_selector("#tree", state="attached")
            visitor.follow()
            assert visitor.run() == "done", visitor.alarm
            visitor.leave()
