"""The browser that all tests share: one process can hold only one."""

import pytest

from tests.chromium import launch


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()
