"""The block-diffusion drafter: the engine calls the same computation that was trained, and the files are DFlash's."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from engine.errors import UserError
from engine.methods.shared.denoiser_part import open_denoiser
from engine.methods.shared.dflash_model import DFlashConfig, DFlashModel

CONFIG = DFlashConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    block_size=5,
    target_layer_ids=(0, 2),
    mask_token_id=1,
    num_target_layers=4,
)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return DFlashModel(CONFIG).eval()


@torch.inference_mode()
def test_cached_path_equals_training_path(model):
    features, anchors = torch.randn(2, 12, 64), torch.tensor([[0, 3, 12], [7, 11, 1]])
    blocks = torch.randn(2, 3, 5, 32)
    trained = model(features, blocks, anchors)
    for s in range(2):
        for a, place in enumerate(anchors[s].tolist()):
            context = model.context_kv(model.project(features[s, :place]), torch.arange(place))
            cached = model.forward_block(blocks[s, a], place + torch.arange(5), context)
            torch.testing.assert_close(cached, trained[s, a], atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_context_can_be_appended_to(model):
    features, block = torch.randn(9, 64), torch.randn(5, 32)
    whole = model.context_kv(model.project(features), torch.arange(9))
    parts = [
        model.context_kv(model.project(features[a:b]), torch.arange(a, b))
        for a, b in ((0, 4), (4, 5), (5, 9))
    ]
    joined = [tuple(torch.cat([p[i][x] for p in parts], dim=-2) for x in (0, 1)) for i in range(2)]
    positions = 9 + torch.arange(5)
    torch.testing.assert_close(
        model.forward_block(block, positions, joined), model.forward_block(block, positions, whole)
    )


@torch.inference_mode()
def test_files(model, tmp_path):
    model.save(tmp_path, {})
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == "dflash" and config["block_size"] == 5
    assert config["dflash_config"] == {"target_layer_ids": [0, 2], "mask_token_id": 1}
    tensors = load_file(tmp_path / "model.safetensors")
    assert tensors["fc.weight"].shape == (32, 64) and tensors["fc.weight"].dtype == torch.bfloat16
    assert {
        "hidden_norm.weight",
        "norm.weight",
        "layers.1.self_attn.q_norm.weight",
        "layers.0.mlp.gate_proj.weight",
        "layers.0.input_layernorm.weight",
        "layers.1.post_attention_layernorm.weight",
    } <= set(tensors)
    again = DFlashModel.read(tmp_path)
    assert again.config == CONFIG and again.fc.weight.dtype == torch.float32


def test_published_config():
    """Fields as in published checkpoints: rope parameters in a dictionary, and fields that we do not know."""
    raw = {
        **DFlashModel(CONFIG).fields(),
        "rope_parameters": {"rope_theta": 1e6},
        "attention_bias": False,
    }
    del raw["rope_theta"]
    assert DFlashConfig.of(raw).rope_theta == 1e6


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_parameters": ["default"], "rope_theta": None},
        {"num_hidden_layers": 10**9},
        {"intermediate_size": 1 << 40},
    ],
)
def test_a_wrong_config_is_one_sentence(tmp_path, changes):
    """A tiny file cannot make the engine build layers of the sizes that its config names."""
    DFlashModel(CONFIG).save(tmp_path, {})
    config = json.loads((tmp_path / "config.json").read_text()) | changes
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="There is no diffusion drafter to open at") as told:
        open_denoiser(str(tmp_path), torch.float32, "cpu")
    assert str(told.value).endswith(".") and "\n" not in str(told.value)
