"""The lean forward of the diffusion drafter against its module: same weights, same numbers."""

import copy

import pytest
import torch

from engine.cpu import lean_block, lean_layer, lean_order
from engine.cpu.block_context import LeanContext, lean_contexts
from engine.cpu.lean_order import Columns, Packed, Rows
from engine.parts.block_context import ModuleContext, context_of
from engine.parts.dflash_model import DFlashConfig, DFlashModel

BLOCK, WIDTH, LAYERS = 5, 48, (0, 2)


def drafter(**changes) -> DFlashModel:
    torch.manual_seed(0)
    shape = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12} | changes
    config = DFlashConfig(
        vocab_size=64,
        hidden_size=WIDTH,
        intermediate_size=80,
        num_hidden_layers=3,
        block_size=BLOCK,
        target_layer_ids=LAYERS,
        mask_token_id=1,
        **shape,
    )
    model = DFlashModel(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.add_(
            torch.randn_like(parameter) * 0.2
        )  # norms start as 1; here they shall matter
    return model


def lean_context(model: DFlashModel) -> LeanContext:
    model.make_context = lean_contexts(model)
    return context_of(model)


@pytest.fixture(params=[Columns, Rows, Packed], ids=["columns", "rows", "packed"])
def each_order(request, monkeypatch):
    monkeypatch.setattr(lean_order, "WORTH_PACKING", 1)
    monkeypatch.setattr(lean_layer, "order", lambda: request.param)
    monkeypatch.setattr(lean_block, "order", lambda: request.param)


@pytest.mark.parametrize("changes", [{}, {"num_key_value_heads": 4}, {"head_dim": 16}], ids=str)
def test_everything_is_the_same(changes, each_order):
    model = drafter(**changes)
    module = context_of(copy.deepcopy(model))
    lean = lean_context(model)
    assert isinstance(module, ModuleContext) and isinstance(lean, LeanContext)
    for rows in (
        0,
        30,
        1,
        4,
        600,
    ):  # a prompt of one token; the last one beyond the first capacity and the first angles
        features = torch.randn(rows, len(LAYERS) * WIDTH)
        module.read(features)
        lean.read(features)
        for _ in range(2):  # a block leaves nothing behind
            block = torch.randn(BLOCK, WIDTH)
            torch.testing.assert_close(
                lean.denoise(block), module.denoise(block), atol=3e-5, rtol=1e-4
            )


def test_two_sequences_share_the_weights_and_nothing_else():
    model = drafter()
    one, other = lean_context(model), context_of(model)
    features, block = torch.randn(7, len(LAYERS) * WIDTH), torch.randn(BLOCK, WIDTH)
    one.read(features)
    other.read(torch.randn(20, len(LAYERS) * WIDTH))
    other.denoise(block)
    alone = context_of(model)
    alone.read(features)
    torch.testing.assert_close(one.denoise(block), alone.denoise(block))


def test_the_module_still_works_on_the_same_weights(each_order):
    model = drafter()
    features, blocks = torch.randn(1, 9, len(LAYERS) * WIDTH), torch.randn(1, 2, BLOCK, WIDTH)
    anchors = torch.tensor([[3, 6]])
    before = model(features, blocks, anchors)
    lean_contexts(model)
    after = model(features, blocks, anchors)
    torch.testing.assert_close(after, before, atol=1e-5, rtol=1e-5)
