"""Test processes share a cache folder and a server of the page; the tests of one process share a browser."""

import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

WORKER = "PYTEST_XDIST_WORKER" in os.environ
PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

# Compiled modules are kept, whatever the environment says: the tests start dozens of processes, and each would compile all
# modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Each process computes on one core, and more threads only slow down tiny operations. This must be set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

gc.disable()  # until all tests are collected: a full round finds nothing to free among modules

import pytest

from tests.chromium import Tabs, launch

# The cache stays out of the home folder of whoever runs the tests. Without the other settings every process would
# measure the cost of drafts, and the servers would try every drafter ahead of time; tests of these change the settings.
if not WORKER:
    from engine.cache_folder import cache_folder

    # where the real chat model lies if whoever runs the tests has fetched it; tests of it are skipped otherwise
    os.environ.setdefault(
        "DRAFTSCOPE_TESTED_MODELS",
        os.environ.get("DRAFTSCOPE_REAL_MODELS") or str(cache_folder() / "models"),
    )
    os.environ.pop("DRAFTSCOPE_REAL_MODELS", None)
    os.environ["DRAFTSCOPE_CACHE"] = tempfile.mkdtemp(prefix="draftscope-tests-")
    os.environ |= {
        "DRAFTSCOPE_MEASURE": "0",
        "DRAFTSCOPE_AHEAD": "none",
        "DRAFTSCOPE_GRAPH_MEMORY": "0 MB",
        "DRAFTSCOPE_WEIGHTS": "unpacked",  # no process measures whether it is to read them as they are stored
    }


def pytest_unconfigure(config):
    if not WORKER:
        from tests.app.sharing import close_shared

        close_shared()
        shutil.rmtree(os.environ["DRAFTSCOPE_CACHE"], ignore_errors=True)


@pytest.fixture
def uncompiled(monkeypatch):
    """Read models through their modules, because compiling them takes longer than the rest of a small test."""
    from engine.parts import opening

    monkeypatch.setattr(opening, "compiled_model", lambda *_: None)


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def tabs(browser):
    return Tabs(browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    result = yield
    if WORKER and (nextitem is None or nextitem.path != item.path):
        from tests.frugal import between_files  # imports torch

        between_files(item.module)
    return result


ROOT = Path(__file__).parents[1]
METHODS = ROOT / "engine" / "methods"
NOT_HERE = re.compile(r"No module named 'engine\.methods\.(\w+)")


@cache
def removed():
    """Return the names of methods that the last commit has, and whose folders are not here."""
    tracked = ["git", "ls-tree", "-r", "--name-only", "HEAD", str(METHODS)]
    listed = subprocess.run(tracked, check=False, cwd=ROOT, capture_output=True, text=True)
    names = set(re.findall(r"engine/methods/(\w+)/card\.toml", listed.stdout))
    return {name for name in names if not (METHODS / name / "card.toml").is_file()}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip a failing test that names a method whose folder was removed, and report why."""
    report = yield
    if report.failed:
        words = set(re.findall(r"\w+", str(report.longrepr)))
        if named := words & removed():
            reason = f"the method {min(named)} is not here"
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, reason)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip a test file of a method whose folder is missing, and report why."""
    report = yield
    named = NOT_HERE.search(str(report.longrepr)) if report.failed else None
    if named and not (METHODS / named[1] / "card.toml").is_file():
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"the method {named[1]} is not here")
        half = ".".join(collector.path.relative_to(ROOT).with_suffix("").parts)
        sys.modules.pop(half, None)  # another file that imports it is to fail in the same way
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Freeze the collected modules and tests, which stay to the end. With thousands of them, a full round of the
    garbage collector would take most of a second."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark all browser journeys through the page as exhaustive, except those marked ``journey``, and deal the files
    out: each process of ``make test`` begins with a part of the tests as they stand, so each gets as many tests of the
    page, of the engine and of all else."""
    files = list(dict.fromkeys(item.path for item in items))
    dealt = [path for hand in range(PROCESSES) for path in files[hand::PROCESSES]]
    place = {path: at for at, path in enumerate(dealt)}
    items.sort(key=lambda item: place[item.path])
    for item in items:
        on_the_page = "arrive" in getattr(item, "fixturenames", ())
        if on_the_page and item.get_closest_marker("journey") is None:
            item.add_marker("exhaustive")
