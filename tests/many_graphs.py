"""Gives the tests of a file all graphs that small models have by default. To save time, most other tests do with one
graph for all sizes (``DRAFTSCOPE_GRAPHS``)."""

import pytest

from engine.cpu.fixed import GRAPHS
from tests.frugal import forget


@pytest.fixture(autouse=True, scope="module")
def many_graphs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(GRAPHS, "many")
        forget()
        yield
        forget()
