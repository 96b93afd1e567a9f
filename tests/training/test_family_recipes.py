"""The recipes after the target's, on small models: the target's text, alignment in several sizes, a comparison."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.methods.shared.dflash_model import DFlashModel
from engine.training import answers, evaluate, gains
from engine.training import family_figures as figures
from engine.training.__main__ import main
from engine.training.checkpoint import export_model, export_tokenizer
from engine.training.diffusion import spread_layers
from engine.training.generators import MAKERS
from engine.training.new_models import target_config
from engine.training.tokenizer import with_chat
from tests.training.lessons import SMALL

pytestmark = pytest.mark.exhaustive

STORY = "Tom had a red ball {}. He lost it in the park, and then he found it under a tree.\n"


@pytest.fixture
def folders(tokenizer, tmp_path):
    """Corpora of a few sentences; an untrained target and an untrained draft."""
    torch.manual_seed(0)
    chatting = with_chat(tokenizer)
    for name, layers in (("target", 5), ("draft", 1)):
        config = target_config(len(chatting), chatting.eos_token_id, layers, **SMALL)
        export_model(LlamaForCausalLM(config), tmp_path / "models" / name, chatting)
    export_tokenizer(chatting, tmp_path / "run" / "tokenizer")
    (tmp_path / "data").mkdir()
    for split in ("train", "valid"):
        stories = "<|endoftext|>".join(STORY.format(f"{split} {i}") for i in range(12))
        (tmp_path / "data" / f"tinystories_{split}.txt").write_text(stories)
    places = {"data": "data", "checkpoints": "run", "models": "models"}
    return tmp_path, [x for n, p in places.items() for x in (f"--{n}", str(tmp_path / p))]


def test_drafters_of_all_kinds_learn_from_its_own_text(folders, monkeypatch):
    path, places = folders
    places = [*places, "--windows", "12"]
    monkeypatch.setattr("engine.training.selftext.NEW_TOKENS", dict.fromkeys(
        ["story", "operations", "edit", "template", "arithmetic", "code", "chat"], 4
    ))  # fmt: skip
    assert main(["text", "--tokens", "60", *places]) == 0
    students = "draft,diffusion,diffusion-16"
    assert main(["align", "--tokens", "2000", "--students", students, *places]) == 0
    for name, block in (("diffusion", 8), ("parts/diffusion-16", 16)):
        made = DFlashModel.read(path / "models" / name)
        assert made.config.block_size == block
        assert tuple(made.config.target_layer_ids) == spread_layers(5) == (1, 2, 3)
    started = ["--start", str(path / "models" / "diffusion"), "--tokens", "100", *places]
    assert main(["align", "--students", "diffusion-16", *started]) == 0
    longer = DFlashModel.read(path / "models" / "parts" / "diffusion-16")
    assert longer.config.block_size == 16  # whatever the size of the one that it goes on from
    assert main(["align", "--students", "soufflé", *places]) == 2


def test_gains_lie_beside_the_models_that_are_asked_for(folders, monkeypatch):
    path, places = folders
    monkeypatch.setattr(figures, "PER_WORKLOAD", 1)
    monkeypatch.setattr(figures, "GAIN_PROMPTS", 1)
    monkeypatch.setattr(figures, "NEW_TOKENS", 2)
    monkeypatch.setattr(gains, "SIZES", (1, 2))
    assert main(["gains", "--needs", "target", *places]) == 0
    found = json.loads((path / "models" / "target" / "gains.json").read_text())
    assert "suffix" in found["gains"] and "chain" not in found["gains"]
    assert len(found["prompts"]) == len(MAKERS) + 1  # the first story, too
    assert not (path / "models" / "draft" / "gains.json").exists()
    assert main(["gains", "--needs", "draft", *places]) == 0
    found = json.loads((path / "models" / "draft" / "gains.json").read_text())
    assert all(set(curve) <= {"1", "2"} for curve in found["gains"].values())
    assert "chain" in found["gains"] and "suffix" not in found["gains"]


def test_chats_are_evaluated_where_there_is_a_template(folders, monkeypatch):
    path, _ = folders
    monkeypatch.setattr(evaluate, "share_right", lambda model, tokenizer, pairs: len(pairs))
    for tokenizer, there in ((with_template(path), True), (None, False)):
        found = evaluate.operations_report(None, tokenizer or Plain, path / "data", 1)
        assert ("chat: sums" in found) == there and found["sort"] == 1


class Plain:
    chat_template = None


def with_template(path):
    from engine.training.tokenizer import load_tokenizer

    return load_tokenizer(path / "run" / "tokenizer")


def test_answers_in_batches_are_those_one_by_one(folders):
    path, _ = folders
    tokenizer = with_template(path)
    model = LlamaForCausalLM.from_pretrained(path / "models" / "target").eval()
    pairs = [("Sort: b a\nOutput:", " a b"), ("Copy: a dog and a cat\nOutput:", " a dog")]
    together = answers.answers(model, tokenizer, pairs)
    assert together == [answers.answers(model, tokenizer, [pair])[0] for pair in pairs]
    assert answers.is_right("Shuffle: a b\n", " a b", " b a")
    assert answers.same_result("", "so 12.", "1 + 11 = 12") and not answers.same_result(
        "", "12", ""
    )
