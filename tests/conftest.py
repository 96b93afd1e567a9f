"""How the tests are spread over processes and share a cache folder; the tests of one process share a browser."""

import os
import shutil
import tempfile

WORKER = "PYTEST_XDIST_WORKER" in os.environ

# Each process computes on one core. This must be set before torch is loaded.
if WORKER:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from tests.chromium import launch
from tests.lanes import Lanes
from tests.order import place

# The cache stays out of the home folder of whoever runs the tests. Without these settings every process would measure
# the cost of drafts and make many graphs of every model, and the servers would try every drafter ahead of time; tests
# of these change the settings.
if not WORKER:
    os.environ["DRAFTSCOPE_CACHE"] = tempfile.mkdtemp(prefix="draftscope-tests-")
    os.environ |= {
        "DRAFTSCOPE_MEASURE": "0",
        "DRAFTSCOPE_AHEAD": "none",
        "DRAFTSCOPE_GRAPHS": "one",
    }


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
    config.option.loadscopereorder = False
    return Lanes(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    result = yield
    if WORKER and (nextitem is None or nextitem.path != item.path):
        from tests.frugal import between_files  # imports torch

        between_files(item.module)
    return result


def pytest_collection_modifyitems(items):
    """A test in the browser may fail once, because its clicks compete with a server, a renderer and the
    other work of two cores. Tests that needed a second try are named at the end of the run."""
    if WORKER:
        items.sort(key=lambda item: place(item.nodeid))
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1))
