"""How the tests share processes and a cache folder, and the browser that those in one of them share."""

import os
import shutil
import tempfile

WORKER = "PYTEST_XDIST_WORKER" in os.environ

# Each process computes on one core. Before torch is loaded.
if WORKER:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.chromium import launch
from tests.order import place

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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Whole files are dealt out, each to the next process that is free, in the order of the collection. So each process
    that gets a file of the page has one server and one browser for all of them."""
    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


def pytest_collection_modifyitems(items):
    """A test in the browser may fail once: there its clicks meet a server, a renderer and two
    cores' other work. What needed a second try is named at the end of the run."""
    if WORKER:
        items.sort(key=lambda item: place(item.nodeid))
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1))
