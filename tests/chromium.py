"""Finding a Chromium: the system's, else Playwright's own. The headless shell has no windows to draw and takes half the
time to open a page."""

import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]


def launch(playwright):
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return playwright.chromium.launch(executable_path=found, args=FLAGS)
