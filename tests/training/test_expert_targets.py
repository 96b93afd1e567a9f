"""The two targets with experts, trained at a small size."""

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.model.experts import ExpertsModel
from engine.parts.opening import load_language_model
from engine.sizes.expert_use import idle, used
from engine.training.expert_targets import (
    ExpertsPlan,
    balance_loss,
    chunk_use,
    expert_text,
    export_target,
    locality,
    target_table,
    train_target,
)
from engine.training.loop import Budget
from engine.training.new_models import draft_config

PLAN = ExpertsPlan({"num_experts": 12, "expert_size": 4}, length=64, windows=60, rows=4)


def test_locality_is_least_where_neighbours_use_the_same_experts():
    same = torch.tensor([[[1.0, -1.0], [1.0, -1.0]]])
    other = torch.tensor([[[1.0, -1.0], [-1.0, 1.0]]])
    assert locality(same) < 1e-6
    assert locality(other) > 1


def test_a_chunk_uses_as_many_experts_as_its_tokens_do_together():
    one, each = torch.full((1, 8, 8), -1.0), torch.full((1, 8, 8), -1.0)
    one[..., 0] = 1.0
    each[0, range(8), range(8)] = 1.0
    assert chunk_use(one) == 0, "an eighth, which is below the aim"
    assert chunk_use(each) == pytest.approx(1 - 0.2, abs=1e-2)


def test_the_balance_is_best_where_all_experts_are_used_alike():
    even = torch.eye(4)[None] * 9
    uneven = torch.eye(4)[None, :1].expand(1, 4, 4) * 9
    assert balance_loss([even], 1) < balance_loss([uneven], 1)


@pytest.mark.exhaustive
def test_neighbours_share_experts_where_they_were_trained_to(tokenizer, tmp_path):
    """A second call goes on from the checkpoint: with the same budget nothing is left to do."""
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    known = len(tokenizer), tokenizer.eos_token_id
    draft = LlamaForCausalLM(draft_config(*known, layers=2, intermediate_size=48, **shape))
    text = expert_text(tokenizer, tmp_path / "none", PLAN)
    folders = [tmp_path / "shared", tmp_path / "own"]

    def train(folder, per_token) -> bytes:
        budget, work = Budget(tokens=4 * 64 * 150), tmp_path / f"{folder.name} work"
        model = train_target(draft, text, PLAN, per_token, budget, work, say=lambda _: None)
        export_target(model, folder, tokenizer)
        return (folder / "model.safetensors").read_bytes()

    for folder, per_token in zip(folders, (0, 3), strict=True):
        assert train(folder, per_token) == train(folder, per_token)
    tokens = text.tokens[0].tolist()
    models = [load_language_model(str(folder)) for folder in folders]
    assert all(isinstance(model, ExpertsModel) for model in models)
    shared, own = (idle(used(model, tokens), 8) for model in models)
    assert shared > own + 0.1
    assert len(target_table(folders, tokenizer, tmp_path / "none").splitlines()) == 3
