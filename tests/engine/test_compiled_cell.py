"""The compiled pass of an EAGLE cell against its module: same weights, same numbers."""

import copy

import pytest
import torch

from engine.cpu import eagle_context
from engine.cpu.eagle_context import CompiledContext, compiled_contexts
from engine.parts.eagle_context import ModuleContext, context_of
from engine.parts.eagle_layout import read_cell
from tests.engine.eagle_cells import LAYOUTS, H, checkpoint, tensors_of


@pytest.fixture(params=LAYOUTS)
def cell(request, tmp_path):
    config, shapes = LAYOUTS[request.param]()
    folder = checkpoint(tmp_path / "cell", config, tensors_of(shapes))
    return read_cell(folder, torch.float32, "cpu")


SEEN = [torch.eye(3, dtype=torch.bool), torch.tensor([[1, 0, 0, 1, 0], [0, 0, 1, 0, 1]]).bool()]
"""Which rows each row sees: three siblings, then a child of the first beside a child of the third."""


@torch.no_grad()
def test_everything_is_the_same(cell, caplog):
    """Prompts and steps of several lengths, one of them beyond the first capacity, each with a tree below it. The
    first lengths use the graphs for the usual numbers of rows."""
    caplog.set_level("INFO", "engine.cpu.fixed")
    module = context_of(copy.deepcopy(cell))
    cell.make_context = compiled_contexts(cell)
    fast = context_of(cell)
    assert isinstance(module, ModuleContext) and isinstance(fast, CompiledContext)
    for rows in (4, 7, 30, 1, 600, 2):
        pairs = torch.randn(2, rows, H)
        found = [context.read(*pairs) for context in (module, fast)]
        torch.testing.assert_close(*found, atol=1e-4, rtol=1e-4)
        for depth, seen in enumerate(SEEN):
            pairs = torch.randn(2, len(seen), H)
            grown = [context.grow(*pairs, depth, seen) for context in (module, fast)]
            torch.testing.assert_close(*grown, atol=1e-4, rtol=1e-4)
        one = torch.randn(2, 1, H)
        chained = [context.grow(*one, 2, None) for context in (module, fast)]
        torch.testing.assert_close(*chained, atol=1e-4, rtol=1e-4)
    assert module.length == fast.length == 644
    assert not caplog.records, "the graphs of usual numbers agree with the other"


def test_where_it_cannot_be_compiled_the_module_reads(cell, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("no such operation\nand more")

    monkeypatch.setattr(eagle_context, "compiled", broken)
    cell.make_context = compiled_contexts(cell)
    assert isinstance(context_of(cell), ModuleContext)
    assert [record.message for record in caplog.records] == [
        "The feature drafter runs through its own module: no such operation"
    ]
