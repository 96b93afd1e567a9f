"""A training that goes on from the state that the repository keeps of it."""

from __future__ import annotations

import torch

from engine.training.checkpoint import load_checkpoint
from engine.training.kept import keep, restore, take_up
from engine.training.new_models import target_config
from engine.training.optim import MuonAdam
from engine.training.plan import TrainingPlan, numbered
from engine.training.pretraining import depth_of, grown, new_model

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}
PLAN = TrainingPlan(numbered((32,)), layers=2)


def trained() -> dict:
    """A checkpoint with one of two layers, as if it had been trained."""
    model = new_model(target_config(64, 0, 2, **SMALL), 1, seed=3)
    optimizer = MuonAdam(model, 0.02, 3e-3, averaged_steps=10)
    for state in optimizer.state.values():
        for kind in ("m", "v"):
            if kind in state:
                state[kind].uniform_()
    optimizer.steps = 17
    budget = {"spent_seconds": 5.0, "spent_tokens": 17 * PLAN.step_tokens}
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "budget": budget,
        "index": 17,
    }


def test_weights_and_adam_come_back(tmp_path):
    saved, path = trained(), tmp_path / "kept" / "target.safetensors"
    keep(saved, path)
    again = take_up(path, PLAN)
    assert (again["index"], depth_of(again)) == (17, 1)
    assert again["budget"]["spent_tokens"] == saved["budget"]["spent_tokens"]
    torch.testing.assert_close(again["model"], saved["model"], atol=1e-4, rtol=1e-3)
    for name, state in saved["optimizer"]["state"].items():
        found = again["optimizer"]["state"][name]
        torch.testing.assert_close(found["mean"], again["model"][name])
        for kind in ("m", "v"):
            if "v" in state:
                torch.testing.assert_close(found[kind], state[kind], atol=1e-3, rtol=1e-2)
    model = new_model(target_config(64, 0, 2, **SMALL), 2, seed=4)
    optimizer = MuonAdam(model, 0.02, 3e-3, averaged_steps=10)
    deep = grown(again, 2)
    model.load_state_dict(deep["model"])
    optimizer.load_state_dict(deep["optimizer"])
    assert optimizer.steps == 17


def test_a_checkpoint_of_this_machine_comes_first(tmp_path):
    kept, checkpoint = tmp_path / "kept" / "target.safetensors", tmp_path / "run" / "target.pt"
    assert restore(kept, checkpoint, PLAN) is None
    keep(trained(), kept)
    kept.with_suffix(".curve.json").write_text("[[16, 4096, 5.0, 100]]\n")
    assert restore(kept, checkpoint, PLAN) == 17
    assert checkpoint.with_suffix(".curve.json").read_text() == "[[16, 4096, 5.0, 100]]\n"
    assert load_checkpoint(checkpoint)["index"] == 17
    assert restore(kept, checkpoint, PLAN) is None
