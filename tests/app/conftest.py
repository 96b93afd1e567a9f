"""One server for all tests of the page."""

import tempfile

import pytest

from tests.app.serving import serving
from tests.app.visitor import SHORT, Visitor


@pytest.fixture(scope="package")
def server():
    """Closed when the process turns to tests of something else, because it holds gigabytes."""
    with tempfile.TemporaryFile("w+") as errors, serving(errors=errors) as running:
        yield running


@pytest.fixture
def visit(server, browser):
    """visit(path, **context settings) -> Visitor; the default path sets a short run. Asserts afterwards that no script
    failed and that nothing was requested from another host."""
    visitors = []

    def arrive(path: str = SHORT, **settings) -> Visitor:
        visitors.append(Visitor(browser, server.url, path, settings))
        return visitors[-1]

    yield arrive
    for visitor in visitors:
        visitor.leave()
    for visitor in visitors:
        assert visitor.failures == []
        assert visitor.foreign == []
