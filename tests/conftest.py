"""How the tests share two processes, and the browser that those in one of them share."""

import os
import tempfile

# Two processes on two cores: each computes on one. Before torch is loaded.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.chromium import launch

# What is remembered between runs stays out of the home of whoever runs the tests.
os.environ["DRAFTSCOPE_CACHE"] = tempfile.mkdtemp(prefix="draftscope-tests-")


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


class Rooms(LoadScopeScheduling):
    """All tests of the page go to one process, with one server and one browser; of the others, files are
    dealt out."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return "tests/app" if file.startswith("tests/app/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Rooms(config, log)


def pytest_collection_modifyitems(items):
    """A test in the browser may fail once: there its clicks meet a server, a renderer and two
    cores' other work. What needed a second try is named at the end of the run."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1))
