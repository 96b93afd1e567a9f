"""A training that goes on from the state that the repository keeps of it."""

from __future__ import annotations

import torch

from engine.training.checkpoint import load_checkpoint
from engine.training.kept import keep, restore, take_up
from engine.training.new_models import target_config
from engine.training.shared_state import KEPT, SharedState

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}


def trained(config) -> dict:
    """A training state with one of two layers, as if it had been trained."""
    state = SharedState(config, 1, torch.float32)
    state.begin(1, seed=3)
    size = state.shape().size()
    state.moment[:size] = torch.randn(size)
    state.second[:size] = torch.rand(size)
    state.step.fill_(17)
    return state.state_dict()


def test_weights_and_adam_come_back(tmp_path):
    config = target_config(64, 0, 2, **SMALL)
    saved, path = trained(config), tmp_path / "kept" / "target.safetensors"
    keep(saved, config, path)
    again = take_up(path, config)
    assert (again["step"], again["depth"]) == (17, 1)
    torch.testing.assert_close(again["weights"], saved["weights"], atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(again["mean"], again["weights"])
    embedding = 64 * SMALL["hidden_size"]
    for kind in ("moment", "second"):
        torch.testing.assert_close(
            again[kind][:embedding], saved[kind][:embedding], atol=1e-3, rtol=1e-2
        )
    state = SharedState(config, 1, torch.float32)
    state.load_state_dict(again)
    state.grow(2)
    assert int(state.depth) == 2
    assert {len(getattr(state, kind)) for kind in KEPT} == {len(saved["weights"])}


def test_a_checkpoint_of_this_machine_comes_first(tmp_path):
    config = target_config(64, 0, 2, **SMALL)
    kept, checkpoint = tmp_path / "kept" / "target.safetensors", tmp_path / "run" / "target.pt"
    assert restore(kept, checkpoint, config) is None
    keep(trained(config), config, kept)
    kept.with_suffix(".curve.json").write_text("[[16, 4096, 5.0, 100]]\n")
    assert restore(kept, checkpoint, config) == 17
    assert checkpoint.with_suffix(".curve.json").read_text() == "[[16, 4096, 5.0, 100]]\n"
    assert load_checkpoint(checkpoint)["step"] == 17
    assert restore(kept, checkpoint, config) is None
