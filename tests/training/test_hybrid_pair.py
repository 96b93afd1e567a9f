"""The pair of a target with states and its draft, trained at a small size."""

import json
import math

import pytest
import torch
from transformers import AutoModelForCausalLM

from engine.model.hybrid import HybridModel
from engine.parts.opening import load_language_model
from engine.training.distill import divergence_loss
from engine.training.hybrid_pair import PairPlan, export_pair, pair_table, train_pair
from engine.training.loop import Budget
from engine.training.packing import Mixer, windows

pytestmark = pytest.mark.exhaustive

SMALL = {"intermediate_size": 48, "num_attention_heads": 2, "num_key_value_heads": 1}
DRAFT = {**SMALL, "layers": 1, "hidden_size": 32, "head_dim": 16}
PLAN = PairPlan(
    target={
        **SMALL,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "attn_layer_indices": [1],
        "mamba_n_heads": 8,
        "mamba_d_head": 8,
        "mamba_d_state": 8,
    },
    draft=DRAFT,
    length=48,
    windows=60,
    rows=4,
)


def test_its_draft_learns_what_its_target_says(tokenizer, tmp_path):
    def train(folder, tokens):
        place, budget = tmp_path / folder, Budget(tokens=tokens)
        pair = train_pair(tokenizer, tmp_path / "none", place, PLAN, budget, say=lambda _: None)
        export_pair(pair, place, tokenizer)
        folders = place, place / "parts" / "draft"
        return [AutoModelForCausalLM.from_pretrained(folder) for folder in folders]

    text = windows(Mixer(tokenizer, tmp_path / "none", 9), 48, 9)
    tokens = torch.stack([torch.from_numpy(next(text)[0].astype("int64")) for _ in range(8)])

    @torch.no_grad()
    def apart(target, draft) -> float:
        p, q = (model(tokens).logits.flatten(0, 1) for model in (target, draft))
        return divergence_loss(q, p, torch.ones(len(p))).item()

    def surprise(target) -> float:
        return target(tokens, labels=tokens).loss.item()

    little, much = train("little", 4 * 48 * 2), train("much", 4 * 48 * 120)
    assert surprise(much[0]) < surprise(little[0]) - 0.5
    assert apart(*much) < 0.5 * apart(much[0], little[1])


def test_it_is_a_pair_that_the_engine_reads(tokenizer, tmp_path):
    """A second call goes on from the checkpoints: with the same budget nothing is left to do."""
    said: list[str] = []
    made = tmp_path / "made"

    def train() -> bytes:
        budget, folders = Budget(tokens=4 * 48 * 60), (tmp_path / "none", tmp_path / "work")
        pair = train_pair(tokenizer, *folders, PLAN, budget, say=said.append)
        export_pair(pair, made, tokenizer)
        return (made / "model.safetensors").read_bytes()

    assert train() == train()
    target = load_language_model(str(made))
    assert isinstance(target, HybridModel)
    assert len(target.mixers) == 1
    config = json.loads((made / "config.json").read_text())
    assert config["dtype"] == "float32"
    told = "\n".join(said)
    assert "under 1 GB of memory" in told
    assert "time: a batch takes" in told
    table = pair_table(made, tmp_path / "none", 1, PLAN.length).splitlines()
    rows = {line.split()[0]: float(line.split()[-1]) for line in table[1:3]}
    assert rows["target"] < math.log(len(tokenizer)) - 0.5  # better than an untrained model
