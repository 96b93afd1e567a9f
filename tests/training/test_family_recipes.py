"""The recipes after the target's, on small models: the target's text, alignment in several sizes, a comparison."""

from __future__ import annotations

import json

import pytest
from transformers import LlamaForCausalLM

from engine.methods.shared.dflash_model import DFlashModel
from engine.training import answers, evaluate, gains
from engine.training import family_figures as figures
from engine.training.__main__ import main
from engine.training.checkpoint import export_tokenizer
from engine.training.diffusion import spread_layers
from engine.training.generators import MAKERS
from engine.training.tokenizer import with_chat
from tests.training.conftest import WORKLOADS, flags, write_family

pytestmark = pytest.mark.exhaustive


@pytest.fixture
def folders(tokenizer, tmp_path):
    write_family(tmp_path, tokenizer, target=5, draft=1)
    export_tokenizer(with_chat(tokenizer), tmp_path / "run" / "tokenizer")
    return tmp_path, flags(tmp_path)


def test_drafters_of_all_kinds_learn_from_its_own_text(folders, monkeypatch):
    path, places = folders
    places = [*places, "--windows", "12"]
    monkeypatch.setattr("engine.training.selftext.NEW_TOKENS", dict.fromkeys(WORKLOADS, 4))
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


def test_chats_are_evaluated_where_there_is_a_template(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate, "share_right", lambda model, tokenizer, pairs: len(pairs))
    for asked, there in ((with_chat(tokenizer), True), (Plain, False)):
        found = evaluate.operations_report(None, asked, tmp_path, 1)
        assert ("chat: sums" in found) == there and found["sort"] == 1


class Plain:
    chat_template = None


def test_answers_in_batches_are_those_one_by_one(family, tokenizer):
    tokenizer = with_chat(tokenizer)
    model = LlamaForCausalLM.from_pretrained(family / "models" / "target").eval()
    pairs = [("Sort: b a\nOutput:", " a b"), ("Copy: a dog and a cat\nOutput:", " a dog")]
    together = answers.answers(model, tokenizer, pairs)
    assert together == [answers.answers(model, tokenizer, [pair])[0] for pair in pairs]
    assert answers.is_right("Shuffle: a b\n", " a b", " b a")
    assert answers.same_result("", "so 12.", "1 + 11 = 12")
    assert not answers.same_result("", "12", "")
