"""The pair that is measured on a GPU, trained at a small size."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from engine.training.distill import divergence_loss
from engine.training.large_pair import PairPlan, train_pair
from engine.training.new_models import draft_config, parameter_count, target_config
from engine.training.packing import Mixer, windows
from engine.training.training_budget import Budget

pytestmark = pytest.mark.exhaustive

SMALL = {
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}
PLAN = PairPlan(
    target={"layers": 2, "hidden_size": 48, **SMALL},
    draft={"layers": 1, "hidden_size": 32, **SMALL},
    length=48,
    windows=60,
    rows=4,
)


def test_its_draft_learns_what_its_target_says(tokenizer, tmp_path):
    def train(folder, tokens):
        train_pair(
            tokenizer, tmp_path / "none", tmp_path / folder, Budget(tokens=tokens),
            torch.device("cpu"), PLAN, say=lambda _: None,
        )  # fmt: skip
        return [
            AutoModelForCausalLM.from_pretrained(tmp_path / folder / name)
            for name in ("target", "draft")
        ]

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


def test_it_is_of_the_100_m_class():
    from transformers import LlamaForCausalLM

    plan = PairPlan()
    with torch.device("meta"):
        target = LlamaForCausalLM(target_config(4096, 0, **plan.target))
        draft = LlamaForCausalLM(draft_config(4096, 0, **plan.draft))
    assert 95e6 < parameter_count(target) < 115e6
    assert parameter_count(draft) < parameter_count(target) / 20
