"""A tiny pair on the disk whose draft is often, and not always, right; and tunings that take seconds."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.parts.loading import ModelPaths
from engine.sizes import verify_cost
from engine.tune import candidates, checking_race
from tests.engine.tiny import VOCABULARY, tiny_hf_model

NOISE = 0.01


@pytest.fixture(scope="session")
def pair(tmp_path_factory) -> ModelPaths:
    words = {"[UNK]": 0} | {f"w{i}": i for i in range(1, VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    folder = tmp_path_factory.mktemp("pair")
    model = tiny_hf_model("llama", 0)
    for name in ("target", "draft"):
        model.save_pretrained(folder / name)
        fast.save_pretrained(folder / name)
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += NOISE * torch.randn_like(parameter)
    return ModelPaths(str(folder / "target"), {"draft": str(folder / "draft")})


@pytest.fixture
def quick(monkeypatch):
    """Time passes once and races for a moment: what is asserted of these tunings are counts."""
    monkeypatch.setattr(verify_cost, "TURNS", 1)
    monkeypatch.setattr(checking_race, "TURN", 0.02)
    monkeypatch.setattr(checking_race, "SECONDS", 0.05)
    monkeypatch.setattr(checking_race, "GROUP", 2)
    monkeypatch.setattr(candidates, "SIZES", (2, 5))
