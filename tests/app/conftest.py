"""Servers for all tests of the page, whichever process they run in."""

import pytest

from tests.app.sharing import host_server, shared_server
from tests.app.visitor import SHORT, Visitor


@pytest.fixture(scope="session")
def server():
    return shared_server()


@pytest.fixture(scope="session")
def host():
    """A server whose host lends models and watches a folder."""
    return host_server()


@pytest.fixture
def visit(server, tabs):
    """visit(path, **settings of the tab) -> Visitor; the default path sets a short run. Asserts afterwards that no script
    failed and that nothing was requested from another host."""
    visitors = []

    def arrive(path: str = SHORT, **settings) -> Visitor:
        visitors.append(Visitor(tabs, server.url, path, settings))
        return visitors[-1]

    yield arrive
    for visitor in visitors:
        visitor.leave()
    for visitor in visitors:
        assert visitor.failures == []
        assert visitor.foreign == []
