"""The diffusion drafter on static buffers writes what its plain passes write, and never waits for the host."""

import pytest
import torch

from engine.core.decode import decode
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.fast.gpu import kernel_calls
from engine.fast.gpu.choice import OneEach
from engine.fast.gpu.host_free import HostFree
from engine.fast.gpu.inputs import Size, StepInputs
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.kernels import tree_attention
from engine.methods.ddtree.drafter import DDTreeDrafter
from engine.methods.dflash.drafter import DFlashDrafter
from engine.methods.shared import static_block_context as block_context
from engine.methods.shared.block_context import ModuleContext, context_of
from engine.methods.shared.static_block_context import (
    StaticContext,
    buffer_sets_of,
    denoise,
    draft,
    read,
    static_contexts,
)
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.engine.test_compiled_block import BLOCK, LAYERS, WIDTH, drafter
from tests.verifiers.tiny import tiny_models


@pytest.mark.parametrize("changes", [{}, {"num_key_value_heads": 4, "head_dim": 16}], ids=str)
def test_everything_is_the_same(changes, monkeypatch):
    """Prompts and steps of several sizes, buffers that must grow, and a set that has been used before."""
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.MARGIN", 0)
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.SMALLEST", 1)
    monkeypatch.setattr(block_context, "CAPACITY", 16)
    model = drafter(**changes)
    sets, buffers = buffer_sets_of(model), None
    for sizes in ((0, 30, 1, 4, 100, 2), (3, 5, 1, 9, 33, 34)):
        module, static = ModuleContext(model), StaticContext(sets)
        assert buffers in (None, static._buffers)
        buffers = static._buffers
        for rows in sizes:
            features = torch.randn(rows, len(LAYERS) * WIDTH)
            module.read(features)
            static.read(features)
            for _ in range(2):  # a block leaves nothing behind
                block = torch.randn(BLOCK, WIDTH)
                found, expected = static.denoise(block), module.denoise(block)
                torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)
        del static


@pytest.mark.parametrize(
    ("kind", "options"),
    [(DFlashDrafter, {"length": 3}), (DDTreeDrafter, {"length": 3, "budget": 6})],
)
def test_drafts_are_those_of_the_plain_way(kind, options, monkeypatch):
    models = tiny_models(16)
    denoiser = models.part("diffusion")
    sets = buffer_sets_of(denoiser)
    rule, sampling = verifier("rejection"), Sampling(0.9, seed=3)

    def steps(context):
        monkeypatch.setattr(denoiser, "make_context", context)
        request = TextRequest(kind.build(options, models), rule, sampling, [3, 5, 7, 3], 24)
        return [(step.tree.tokens, step.output) for step in decode(models.target, request)]

    assert steps(lambda _: StaticContext(sets)) == steps(ModuleContext)


def test_no_pass_asks_the_host_anything(monkeypatch):
    pytest.importorskip("triton")
    from engine.fast.kernels.compiled import caught

    monkeypatch.setattr(kernel_calls, "takes", lambda tensor: True)
    monkeypatch.setattr(tree_attention, "on_gpu", lambda tensor: True)
    meta = torch.device("meta")
    model = drafter().to(meta, torch.bfloat16)
    cache, inputs = StaticCache.empty(len(model.layers), 64), StepInputs(Size(BLOCK, 1), meta)
    embeddings, features = (
        torch.empty(BLOCK, width, dtype=torch.bfloat16, device=meta)
        for width in (WIDTH, len(LAYERS) * WIDTH)
    )
    with torch.no_grad(), caught() as launches, HostFree():
        read(model, inputs, features, cache)
        hidden = denoise(model, inputs, embeddings, cache)
    assert hidden.shape == (BLOCK, WIDTH)
    assert len(launches) == 2 * len(model.layers)


CHOICES = [
    OneEach(3, Sampling()),
    OneEach(3, Sampling(0.8, top_p=0.9)),
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_nor_does_what_is_chosen_for_a_block(choice, monkeypatch):
    pytest.importorskip("triton")
    from engine.fast.kernels.compiled import caught

    monkeypatch.setattr(kernel_calls, "takes", lambda tensor: True)
    monkeypatch.setattr(tree_attention, "on_gpu", lambda tensor: True)
    meta = torch.device("meta")
    models = tiny_models(16)
    module, model = models.target.model.to(meta), models.part("diffusion").to(meta)
    target = language_model(module, None, "t", lean=False)
    cache, inputs = StaticCache.empty(len(model.layers), 64), StepInputs(Size(4, 1), meta)
    drawn = torch.empty(3, dtype=torch.float64, device=meta)
    with torch.no_grad(), caught(), HostFree():
        found = draft(model, inputs, cache, target, choice, drawn)
    ids, q = found
    assert ids.shape == (3,) and ids.dtype == torch.int32
    assert q is None if choice.greedy else q.shape == (3, 16)


def test_where_nothing_can_be_captured_the_module_goes_on(monkeypatch):
    sets, model = [], drafter()

    def kept(of):
        sets.append(buffer_sets_of(of))
        return sets[-1]

    monkeypatch.setattr(block_context, "buffer_sets_of", kept)
    model.make_context = static_contexts(model)
    assert isinstance(context_of(model), StaticContext)
    (found,) = sets
    found.usable = False
    assert type(context_of(model)) is ModuleContext
