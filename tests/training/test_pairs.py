"""The pairs of a target and its draft, trained at a small size."""

import json
import math
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from engine.model.hybrid import HybridModel
from engine.parts.opening import load_language_model
from engine.training.distill import divergence_loss
from engine.training.loop import Budget
from engine.training.new_models import draft_config, parameter_count, target_config
from engine.training.packing import Mixer, windows
from engine.training.pairs import HYBRID, LARGE, export_pair, pair_table, train_pair

pytestmark = pytest.mark.exhaustive

SMALL = {"intermediate_size": 48, "num_attention_heads": 2, "num_key_value_heads": 1}
DRAFT = {**SMALL, "layers": 1, "hidden_size": 32, "head_dim": 16}
PLAN = replace(
    LARGE,
    target={**SMALL, "layers": 2, "hidden_size": 48, "head_dim": 16},
    draft=DRAFT,
    length=48,
    windows=60,
    rows=4,
)
WITH_STATES = replace(
    HYBRID,
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
    windows=24,
    rows=4,
)


def test_its_draft_learns_what_its_target_says(tokenizer, tmp_path):
    def train(folder, tokens):
        place, budget = tmp_path / folder, Budget(tokens=tokens)
        pair = train_pair(tokenizer, tmp_path / "none", place, PLAN, budget, say=lambda _: None)
        export_pair(pair, (place / "target", place / "draft"), tokenizer)
        return [AutoModelForCausalLM.from_pretrained(place / name) for name in ("target", "draft")]

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


def test_the_large_one_is_of_the_100_m_class():
    with torch.device("meta"):
        target = LlamaForCausalLM(target_config(4096, 0, **LARGE.target))
        draft = LlamaForCausalLM(draft_config(4096, 0, **LARGE.draft))
    assert 95e6 < parameter_count(target) < 115e6
    assert parameter_count(draft) < parameter_count(target) / 20


def test_the_hybrid_one_is_a_pair_that_the_engine_reads(tokenizer, tmp_path):
    """A second call goes on from the checkpoints: with the same budget nothing is left to do."""
    said: list[str] = []
    made = tmp_path / "made"

    def train() -> bytes:
        budget, folders = Budget(tokens=4 * 48 * 60), (tmp_path / "none", tmp_path / "work")
        pair = train_pair(tokenizer, *folders, WITH_STATES, budget, say=said.append)
        export_pair(pair, (made, made / "parts" / "draft"), tokenizer)
        return (made / "model.safetensors").read_bytes()

    assert train() == train()
    target = load_language_model(str(made))
    assert isinstance(target, HybridModel)
    assert len(target.mixers) == 1
    config = json.loads((made / "config.json").read_text())
    assert config["dtype"] == "float32"
    told = "\n".join(said)
    assert "memory: about" in told
    assert "time: a batch takes" in told
    table = pair_table(made, tmp_path / "none", WITH_STATES.length, 1).splitlines()
    rows = {line.split()[0]: float(line.split()[-1]) for line in table[1:3]}
    assert rows["target"] < math.log(len(tokenizer)) - 0.5  # better than an untrained model
