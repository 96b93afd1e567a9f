"""Recipes that end with a draft model: on-policy text, the two stages of FastDraft, and drafts that chain can take."""

import json

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.parts.digest import FIELD, digest_of
from engine.parts.loading import ModelPaths
from engine.run import RunRequest, open_run
from engine.training import counted_acceptance as acceptance
from engine.training.__main__ import main
from engine.training.checkpoint import export_model
from engine.training.new_models import draft_config
from engine.training.tokenizer import load_tokenizer
from tests.training.lessons import (
    SMALL,
    VOCABULARY,
    learn_own_text,
    lesson,
    own_text,
    student_of,
    tiny_target,
)

pytestmark = pytest.mark.exhaustive

SHORT = ["--rows", "2", "--length", "32", "--tokens", "1024"]


def student(key, **options):
    torch.manual_seed(5)
    draft = LlamaForCausalLM(draft_config(VOCABULARY, 0, 1, **SMALL)).eval().requires_grad_(False)
    return student_of(key, tiny_target(), None, draft, **options)


def test_a_draft_continues_texts_with_its_own_draws():
    """Token by token the same as without a cache, given the same noise."""
    from engine.methods.distillspec.recipe import continued

    draft = student("distillspec").draft
    given = own_text()[:3, :5]
    found = continued(draft, given, 12, torch.Generator().manual_seed(3))
    noise = torch.Generator().manual_seed(3)
    text = given
    while text.shape[1] < 12:
        q = draft(input_ids=text, use_cache=False).logits[:, -1].softmax(-1).double()
        share = torch.rand(3, generator=noise, dtype=torch.float64)
        drawn = (q.cumsum(-1) > share[:, None] * q.sum(-1, keepdim=True)).int().argmax(-1)
        text = torch.cat([text, drawn[:, None]], 1)
    assert torch.equal(found, text)


def test_only_what_the_draft_wrote_counts_on_policy():
    made = student("distillspec", on_policy=1.0)
    part = made.start()
    given = lesson(made, own_text()[:4], index=2)
    own = made.own_lesson(part, given, torch.Generator().manual_seed(0))
    begun = int((~own.counted[0]).sum())
    assert 3 <= begun <= 12 and own.counted[:, begun:].all()
    assert torch.equal(own.tokens[:, :begun], given.tokens[:, :begun])
    assert not torch.equal(own.tokens, given.tokens)
    truth = tiny_target()(input_ids=own.tokens, use_cache=False).logits
    torch.testing.assert_close(own.logits, truth)


@pytest.mark.parametrize("key", ["distillspec", "direct_align"])
def test_it_learns_what_the_target_keeps(key):
    made = student(key)
    part = made.start()
    learn_own_text(made, part, 60)
    found = made.measured(part, [lesson(made, own_text()[40:])])
    kept = [found[when]["kept_at_temperature_1"] for when in ("before", "after")]
    assert kept[1] > kept[0] + 0.03, "acceptance at temperature 1"
    varied = [found[when]["total_variation"] for when in ("before", "after")]
    assert [1 - one for one in varied] == pytest.approx(kept, abs=2e-4), "Leviathan's identity"
    assert "total_variation" in made.report(found)


def test_fastdraft_learns_the_text_itself():
    made = student("fastdraft", pretraining=0.0)
    part, held_out = made.start(), lesson(student("fastdraft"), own_text()[40:])
    before = made.loss(part, held_out).item()
    learn_own_text(made, part, 60)
    assert made.loss(part, held_out).item() < before - 0.1


def test_the_stages_of_fastdraft_read_different_text():
    made = student("fastdraft", pretraining=0.25)
    assert [made.mixture(done) for done in (0.0, 0.24, 0.25, 1.0)] == [(0, 1)] * 2 + [(1, 0)] * 2


def test_lengths_of_chains_are_those_of_single_texts():
    made = student("direct_align")
    tokens = own_text()[:2]
    found = made.accepted(made.draft, lesson(made, tokens))
    for row, text in zip(found, tokens, strict=True):
        expected = acceptance.chain_matches(made.draft, text.tolist(), 1, 4)
        assert row[:-1].tolist() == expected and int(row[-1]) == 0


def test_recipes_leave_drafts_and_tell_what_they_gained(ready, capsys):
    path, given = ready
    models = path / "models"
    tokenizer = load_tokenizer(models / "target")
    torch.manual_seed(1)
    start = LlamaForCausalLM(draft_config(len(tokenizer), tokenizer.eos_token_id, 1, **SMALL))
    export_model(start, models / "draft", tokenizer)
    assert main(["distillspec", "--option", "divergence=jensen_shannon", *SHORT, *given]) == 0
    assert main(["fastdraft", "--option", "layers=1", *SHORT, *given]) == 0
    told = capsys.readouterr().out
    assert told.count("kept_at_temperature_1") == 2 and "jensen_shannon" in told
    made = models / "parts" / "distillspec"
    config = json.loads((made / "config.json").read_text())
    assert config[FIELD] == digest_of(models / "target")
    assert config["before"]["forward_kl"] != config["after"]["forward_kl"]


def test_drafts_that_are_parts_of_their_own_kind_are_opened_and_draft(ready, capsys):
    """A draft with a second tokenizer, and a nested one: from the recipe to a text of the target."""
    path, given = ready
    assert main(["omnidraft", "--option", "vocabulary=300", *SHORT, *given]) == 0
    assert main(["s2d", "--option", "layers=2", *SHORT, *given]) == 0
    told = capsys.readouterr().out
    assert "draft_tokens_per_token" in told and "temperature 1 by exit: 1: " in told
    folders = {key: str(path / "models" / "parts" / key) for key in ("omnidraft", "s2d")}
    paths = ModelPaths(str(path / "models" / "target"), folders)
    text = {}
    for key in ("none", *folders):
        run = open_run(RunRequest("Tom had a red ball", paths, key, max_new_tokens=12))
        lines = [json.loads(line) for line in run.steps()]
        text[key] = [token for line in lines for token in line["output"]["tokens"]]
        drafted = sum(len(line["nodes"]["token"]) for line in lines)
        assert (drafted > 0) == (key != "none")
    assert text["none"] == text["omnidraft"] == text["s2d"] and len(text["none"]) > 5
