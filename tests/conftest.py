"""The browser that all tests share: one process can hold only one."""

import os
import tempfile

import pytest

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


def pytest_collection_modifyitems(items):
    """A test in the browser may fail once: there its clicks meet a server, a renderer and two
    cores' other work. What needed a second try is named at the end of the run."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1))
