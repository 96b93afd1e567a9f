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
