"""Servers for all tests of the page, whichever process they run in."""

import pytest

from app.assets import WEB
from tests.app.sharing import host_server, shared_server
from tests.app.visitor import SHORT, Visitor
from tests.app.wire import Wire
from tests.viz.modules import exposed


@pytest.fixture(scope="session")
def server():
    return shared_server()


@pytest.fixture(scope="session")
def host():
    """Yield a server whose host lends models and watches a folder."""
    return host_server()


@pytest.fixture
def arrive(tabs):
    """arrive(server, path, **settings of the tab) -> Visitor. Asserts afterwards that no script failed and that nothing was
    requested from another host."""
    visitors = []

    def come(server, path: str = SHORT, **settings) -> Visitor:
        visitors.append(Visitor(tabs, server.url, path, settings))
        return visitors[-1]

    yield come
    for visitor in visitors:
        visitor.leave()
    for visitor in visitors:
        assert visitor.failures == []
        assert visitor.foreign == []


@pytest.fixture
def visit(arrive, server):
    """visit(path, **settings of the tab) -> a visitor of the server of most tests; the default path sets a short run."""
    return lambda path=SHORT, **settings: arrive(server, path, **settings)


@pytest.fixture
def wire(server):
    """Yield a visitor without a browser."""
    found = Wire(server.url)
    yield found
    found.leave()


@pytest.fixture(scope="session")
def scripts(browser):
    """A page that holds the scripts of the page in ``DraftscopePage``, and nothing else."""
    page = browser.new_page()
    page.set_content("<!DOCTYPE html><title>t</title>")
    page.add_script_tag(content=exposed("DraftscopePage", WEB))
    yield page
    page.close()
