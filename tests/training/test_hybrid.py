"""The recipe of the target with state-space layers, in a small size."""

import json
import math

import pytest

from engine.model.hybrid import HybridModel
from engine.parts.opening import load_language_model
from engine.training.hybrid_pair import HybridPlan, train_hybrid
from engine.training.training_budget import Budget

pytestmark = pytest.mark.exhaustive

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
PLAN = HybridPlan(
    target={
        **SMALL,
        "num_hidden_layers": 2,
        "attn_layer_indices": [1],
        "mamba_n_heads": 8,
        "mamba_d_head": 8,
        "mamba_d_state": 8,
    },
    draft={**SMALL, "layers": 1, "head_dim": 16},
    length=48,
    windows=24,
    rows=4,
)


def test_it_leaves_a_pair_that_the_engine_reads(tokenizer, tmp_path):
    """A second call goes on from the checkpoints: with the same budget nothing is left to do."""
    said: list[str] = []

    def train():
        budget = Budget(tokens=4 * 48 * 60)
        folders = tmp_path / "none", tmp_path / "work", tmp_path / "made"
        train_hybrid(tokenizer, *folders, budget, PLAN, say=said.append)

    train()
    made = (tmp_path / "made" / "model.safetensors").read_bytes()
    train()
    assert (tmp_path / "made" / "model.safetensors").read_bytes() == made
    target = load_language_model(str(tmp_path / "made"))
    assert isinstance(target, HybridModel)
    assert len(target.mixers) == 1
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    assert config["dtype"] == "float32"
    told = "\n".join(said)
    assert "memory: about" in told
    assert "time: a batch takes" in told
    rows = {line.split()[0]: float(line.split()[-1]) for line in said[-1].splitlines()[1:3]}
    assert rows["target"] < math.log(len(tokenizer)) - 0.5  # better than an untrained model
