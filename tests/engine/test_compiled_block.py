"""The compiled passes of the diffusion drafter against its module: same weights, same numbers."""

import copy

import pytest
import torch

from engine.fast.cpu import compiled_reader
from engine.methods.shared.block_context import ModuleContext, context_of
from engine.methods.shared.compiled_block_context import CompiledContext, compiled_contexts
from engine.methods.shared.dflash_model import DFlashConfig, DFlashModel

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
        parameter.add_(torch.randn_like(parameter) * 0.2)  # norms start as 1 and would not matter
    return model


def compiled_context(model: DFlashModel) -> CompiledContext:
    model.make_context = compiled_contexts(model)
    return context_of(model)


@pytest.mark.parametrize("changes", [{}, {"num_key_value_heads": 4, "head_dim": 16}], ids=str)
def test_everything_is_the_same(changes):
    model = drafter(**changes)
    module = context_of(copy.deepcopy(model))
    fast = compiled_context(model)
    assert isinstance(module, ModuleContext) and isinstance(fast, CompiledContext)
    # 0: a prompt of one token; 600: beyond the first capacity and the first angles
    for rows in (0, 30, 1, 4, 600):
        features = torch.randn(rows, len(LAYERS) * WIDTH)
        module.read(features)
        fast.read(features)
        for _ in range(2):  # a block leaves nothing behind
            block = torch.randn(BLOCK, WIDTH)
            torch.testing.assert_close(
                fast.denoise(block), module.denoise(block), atol=3e-5, rtol=1e-4
            )


def test_two_sequences_share_the_weights_and_nothing_else():
    model = drafter()
    one, other = compiled_context(model), context_of(model)
    features, block = torch.randn(7, len(LAYERS) * WIDTH), torch.randn(BLOCK, WIDTH)
    one.read(features)
    other.read(torch.randn(20, len(LAYERS) * WIDTH))
    other.denoise(block)
    alone = context_of(model)
    alone.read(features)
    torch.testing.assert_close(one.denoise(block), alone.denoise(block))


def test_where_they_cannot_be_compiled_the_module_reads(monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("no such operation\nand more")

    monkeypatch.setattr(compiled_reader, "compiled", broken)
    context = compiled_context(drafter())
    assert isinstance(context, ModuleContext)
    assert [record.message for record in caplog.records] == [
        "The diffusion drafter runs through its own module: no such operation"
    ]
