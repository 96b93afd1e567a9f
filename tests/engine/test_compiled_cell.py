"""The compiled passes of an EAGLE cell against its module: same weights, same numbers."""

import copy
import gc
import weakref
from itertools import product

import pytest
import torch

from engine.core.sampling import Sampling
from engine.fast.cpu import ahead, compiled_reader
from engine.fast.cpu.ahead import BLOCKS
from engine.fast.cpu.compiled_model import CompiledModel
from engine.methods.shared.compiled_cell_context import CompiledContext, compiled_contexts
from engine.methods.shared.compiled_cell_levels import MOST_PAIRS
from engine.methods.shared.eagle_context import ModuleContext, Read, context_of
from engine.methods.shared.eagle_layout import read_cell
from engine.methods.shared.eagle_reader import EagleReader
from engine.model.language_model import LanguageModel
from tests.engine.eagle_cells import EVERY, LAYOUTS, H, V, checkpoint, tensors_of
from tests.engine.tiny import tiny_hf_model
from tests.grids import some
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test

ONE_LAYOUT = pytest.mark.parametrize("cell", ["eagle3"], indirect=True)


@pytest.fixture(params=LAYOUTS)
def cell(request, tmp_path):
    """All layouts, unless a test picks some."""
    config, shapes = EVERY[request.param]()
    folder = checkpoint(tmp_path / "cell", config, tensors_of(shapes))
    return read_cell(folder, torch.float32, "cpu")


@pytest.fixture(scope="module")
def target():
    return CompiledModel(tiny_hf_model("llama", vocab_size=V, hidden_size=H), None, "target")


def contexts(cell, target):
    """Return two contexts: one of the module, one of the compiled cell."""
    module = context_of(copy.deepcopy(cell), target)
    cell.make_context = compiled_contexts(cell)
    fast = context_of(cell, target)
    assert isinstance(module, ModuleContext) and isinstance(fast, CompiledContext)
    return module, fast


def same(one: Read, other: Read):
    for pair in ((one.states, other.states), (one.logits, other.logits)):
        torch.testing.assert_close(*pair, atol=1e-4, rtol=1e-3)


SEEN = [torch.eye(3, dtype=torch.bool), torch.tensor([[1, 0, 0, 1, 0], [0, 0, 1, 0, 1]]).bool()]
"""Which rows each row sees: three siblings, then a child of the first beside a child of the third."""


@torch.no_grad()
def test_everything_is_the_same(cell, target, caplog):
    """Prompts and steps of several lengths, one of them beyond the first capacity, each with a tree below it. The
    first lengths use the graphs for the usual numbers of rows."""
    caplog.set_level("INFO", "engine.fast.cpu.store")
    module, fast = contexts(cell, target)
    for rows in (4, 7, 30, 1, 600, 2):
        pairs = torch.randn(2, rows, H)
        same(*(context.read(*pairs) for context in (module, fast)))
        for depth, seen in enumerate(SEEN):
            pairs = torch.randn(2, len(seen), H)
            same(*(context.grow(*pairs, depth, seen) for context in (module, fast)))
        one = torch.randn(2, 1, H)
        same(*(context.grow(*one, 2, None) for context in (module, fast)))
    assert module.length == fast.length == 644
    assert not caplog.records, "the graphs of usual numbers agree with the other"


@ONE_LAYOUT
def test_where_it_cannot_be_compiled_the_module_reads(cell, target, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("no such operation\nand more")

    monkeypatch.setattr(compiled_reader, "compiled", broken)
    cell.make_context = compiled_contexts(cell)
    assert isinstance(context_of(cell, target), ModuleContext)
    assert [record.message for record in caplog.records] == [
        "The feature drafter runs through its own module: no such operation"
    ]


def agree(one, other):
    assert one.tokens == other.tokens
    for pair in ((one.logits, other.logits), (one.features, other.features)):
        torch.testing.assert_close(*pair, atol=1e-3, rtol=1e-3)


LEVELS = some(product(LAYOUTS, BLOCKS), lambda case: case[0] == "eagle3" or case[1] == BLOCKS[0])
"""A graph of its own for each layout and number of levels: they take long to make."""


@torch.no_grad()
@pytest.mark.parametrize("cell, count", LEVELS, indirect=["cell"])
def test_levels_read_in_one_call_are_those_read_one_by_one(cell, target, count, caplog):
    """After as many pairs as a call takes, after fewer and after more; below drafted rows, too; beyond the first
    capacity, which takes another graph of each number of levels, so only with the smallest; and other rows can follow once
    those that nobody asked for are forgotten."""
    caplog.set_level("INFO", "engine.fast.cpu.store")
    both = contexts(cell, target)
    assert both[1].blocks == BLOCKS and both[0].blocks == ()
    many = [150] if count == BLOCKS[0] else []
    for rows in (MOST_PAIRS, 1, 3, *many, MOST_PAIRS + 1, 2):
        pairs, one = torch.randn(2, rows, H), torch.randn(2, 1, H)
        agree(*(context.read_ahead(*pairs, count) for context in both))
        agree(*(context.grow_ahead(one[0, 0], one[1], count - 1, 2) for context in both))
        for context in both:
            context.forget(1)
        below = torch.randn(2, 2, H)
        seen = torch.tensor([[1, 1, 0], [0, 0, 1]]).bool()
        same(*(context.grow(*below, 1, seen) for context in both))
    assert both[0].length == both[1].length and not caplog.records


@torch.no_grad()
@ONE_LAYOUT
def test_without_a_graph_the_levels_are_read_one_by_one(cell, target, monkeypatch):
    both = contexts(cell, target)
    monkeypatch.setattr(ahead, "compiled", lambda *_: 1 / 0)
    pairs = torch.randn(2, 11, H)
    agree(*(context.read_ahead(*pairs, 4) for context in both))


@pytest.mark.parametrize(
    "cell", some(LAYOUTS, {"eagle3", "speculators"}.__contains__), indirect=True
)
def test_a_target_that_is_not_compiled_or_lacks_embeddings_has_no_such_graphs(cell, target):
    cell.make_context = compiled_contexts(cell)
    plain = LanguageModel(target.model, None, "plain")
    assert context_of(cell, plain).blocks == ()
    short = CompiledModel(target.model, None, "short")
    short.embeddings -= 1
    assert bool(context_of(cell, short).blocks) == (cell.embed_tokens is not None)


@pytest.mark.exhaustive
def test_the_graphs_keep_no_target_in_memory(cell):
    made = CompiledModel(tiny_hf_model("llama", vocab_size=V, hidden_size=H), None, "brief")
    cell.make_context = compiled_contexts(cell)
    assert context_of(cell, made).blocks
    brief = weakref.ref(made)
    del made
    gc.collect()
    assert brief() is None


def chains_of(reader: EagleReader, lengths, expected: int) -> list:
    """Return the tokens and q of a chain of each length. After each chain, other tokens are committed."""
    generator, found = torch.Generator().manual_seed(3), []
    context = [5, 3, 8, 1]
    layers = len(reader._cell.config.layers_of(8)) or 1
    reader.learn(torch.randn(3, layers * H, generator=generator))
    for length in lengths:
        level = reader.catch_up(context, expected)
        for depth in range(length):
            token = int(level.q[0].argmax())
            found.append((token, float(level.q[0, token])))
            if depth + 1 < length:
                level = reader.grow(level.states, [token], depth, None, [()])
        context += [token, 3]
        reader.learn(torch.randn(2, layers * H, generator=generator))
    return found


@torch.no_grad()
@ONE_LAYOUT
def test_drafts_are_the_same_in_fewer_calls(cell, target, monkeypatch):
    lengths = (4, 4, 2, 5, 7, 9, 1, 12)
    plain = EagleReader(copy.deepcopy(cell), target, Sampling())
    expected = chains_of(plain, lengths, 1)
    cell.make_context = compiled_contexts(cell)
    reader, calls = EagleReader(cell, target, Sampling()), []
    grow = CompiledContext.grow
    monkeypatch.setattr(
        CompiledContext, "grow", lambda self, *given: calls.append(1) or grow(self, *given)
    )
    found = chains_of(reader, lengths, 12)
    assert [token for token, _ in found] == [token for token, _ in expected]
    assert [q for _, q in found] == pytest.approx([q for _, q in expected], rel=1e-3)
    assert len(calls) < len(expected) // 3
    assert reader.passes >= plain.passes  # levels that nobody asked for count too


@torch.no_grad()
@pytest.mark.parametrize("cell", ["peagle"], indirect=True)
def test_masks_behind_the_pairs_are_read_and_forgotten(cell, target):
    """In prompts and steps of several lengths, one beyond the rows of a pass and the first capacity."""
    module, fast = contexts(cell, target)
    for rows in (4, 1, 600, 2):
        pairs = torch.randn(2, rows + 7, H)
        found = [context.read(*pairs, ahead=7) for context in (module, fast)]
        same(*found)
        assert len(found[0].logits) == 8
        again = [context.read(*torch.ones(2, 1, H)) for context in (module, fast)]
        same(*again)
    assert module.length == fast.length == 611


@torch.no_grad()
@ONE_LAYOUT
def test_another_token_than_the_likeliest_is_read_alone(cell, target):
    """And so are two rows in the place of one that was read ahead."""
    found = []
    for context_maker in (None, compiled_contexts(cell)):
        cell.make_context = context_maker
        reader = EagleReader(cell, target, Sampling())
        layers = len(cell.config.layers_of(8)) or 1
        generator = torch.Generator().manual_seed(3)
        reader.learn(torch.randn(3, layers * H, generator=generator))
        level = reader.catch_up([5, 3, 8, 1], 4)
        second = int(level.q[0].topk(2).indices[1])
        level = reader.grow(level.states, [second], 0, None, [()])
        seen = torch.tensor([[1, 1, 0], [1, 0, 1]]).bool()
        level = reader.grow(level.states[[0, 0]], [4, 9], 1, seen, [(), ()])
        found.append(level.q)
    torch.testing.assert_close(*found, atol=1e-4, rtol=1e-3)
