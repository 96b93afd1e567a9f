"""How the tests share three processes and a cache folder, and the browser that those in one of them share."""

import os
import shutil
import tempfile

WORKER = "PYTEST_XDIST_WORKER" in os.environ

# Each process computes on one core. Before torch is loaded.
if WORKER:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.chromium import launch

# What is remembered between runs stays out of the home of whoever runs the tests. Every process would measure what
# drafts cost, and their servers try every drafter ahead of time; the tests of both set that themselves.
if not WORKER:
    os.environ["DRAFTSCOPE_CACHE"] = tempfile.mkdtemp(prefix="draftscope-tests-")
    os.environ |= {"DRAFTSCOPE_MEASURE": "0", "DRAFTSCOPE_AHEAD": "none"}


def pytest_unconfigure(config):
    if not WORKER:
        shutil.rmtree(os.environ["DRAFTSCOPE_CACHE"], ignore_errors=True)


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


PAGE = "tests/app/test_"


class Rooms(LoadScopeScheduling):
    """The tests of the page go to two processes, each with one server and one browser; of the others, files are
    dealt out. The page's tests wait a good part of their time."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        if not file.startswith(PAGE):
            return file
        return "the page, a to f" if file.removeprefix(PAGE) < "g" else "the page, g to z"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Rooms(config, log)


def pytest_collection_modifyitems(items):
    """A test in the browser may fail once: there its clicks meet a server, a renderer and two
    cores' other work. What needed a second try is named at the end of the run."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1))
