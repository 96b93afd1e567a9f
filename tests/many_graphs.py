"""Gives the tests of a file the graphs that small models have by default. To save time, most other tests do with one graph
for all sizes (``DRAFTSCOPE_GRAPH_MEMORY``)."""

import pytest

from engine.fast.cpu.budget import SETTING, graph_memory
from tests.frugal import none_opened


@pytest.fixture(autouse=True, scope="module")
def many_graphs():
    with pytest.MonkeyPatch.context() as patch, none_opened():
        patch.delenv(SETTING)
        graph_memory.cache_clear()
        yield
    graph_memory.cache_clear()
