"""Parts that borrow rows of the target's head: a draft of the target's own layers, an EAGLE cell, a block drafter."""

from __future__ import annotations

import itertools
import json

import pytest
import torch

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.chain.recipe import spread
from engine.methods.shared.draft_chain import DraftChain
from engine.methods.shared.draft_model import DraftReader
from engine.methods.shared.draft_part import KIND as DRAFT
from engine.methods.shared.layers_draft import LAYERS
from engine.methods.shared.trimmed_head import NEVER, TrimmedHead, rows_of, trimmed_head
from engine.parts.digest import FIELD, digest_of
from engine.parts.files import in_eight_bits
from engine.parts.loading import Models
from engine.training.__main__ import main
from engine.training.lessons import Lessons
from engine.training.student import taught
from tests.drafters.writing import usual
from tests.training.lessons import VOCABULARY, opened, own_text, written
from tests.training.test_learning import trained

pytestmark = pytest.mark.exhaustive


def test_a_drafts_law_is_0_beyond_its_head_and_leaves_sampled_text_as_it_is(target, tmp_path):
    made, part, _ = trained("draft")
    made.save(part, tmp_path, {})
    model = opened(target)
    draft = DRAFT.load(str(tmp_path), model, torch.float32, "cpu")
    assert draft.vocab_size == VOCABULARY and draft.layers == 2
    assert draft.model.get_input_embeddings() is model.model.get_input_embeddings()
    q = DraftReader(draft, VOCABULARY, Sampling(1.0)).read([4, 9, 2])
    known = made.taught_tokens.tolist()
    assert float(q.sum()) == pytest.approx(1) and (q > 0).nonzero()[:, 0].tolist() == known
    with torch.no_grad():
        learned = made._logits(part, torch.tensor([[4, 9, 2]]))[0, -1].softmax(-1)
    torch.testing.assert_close(q[known], learned, atol=0.02, rtol=0.1)
    models, drawn = Models(model, {"draft": draft}), Sampling(1.0, seed=3)
    texts = [
        [*itertools.chain(*written(model, drafter, drawn, "sampler_match"))]
        for drafter in (usual(DraftChain, models, length=3), usual("none", models))
    ]
    assert texts[0] == texts[1]


def test_files_that_are_no_draft_of_this_target_are_refused_in_a_sentence(target, tmp_path):
    made, part, _ = trained("draft")
    made.save(part, tmp_path, {})
    model, config = opened(target), json.loads((tmp_path / "config.json").read_text())

    def refused(layers):
        (tmp_path / "config.json").write_text(json.dumps({**config, LAYERS: layers}))
        with pytest.raises(UserError) as told:
            DRAFT.load(str(tmp_path), model, torch.float32, "cpu")
        assert "\n" not in str(told.value)
        return str(told.value)

    for wrong in ([], [99], "0", [True, False], [0.5]):
        assert "names no layers of its target" in refused(wrong)
    assert "is missing" in refused([0, 1, 2])
    assert "is not one of its weights" in refused([0])


def test_a_trimmed_head_has_the_targets_logits_for_its_tokens(target):
    tokens = torch.tensor([3, 4, 11, 40])
    head = trimmed_head(target, tokens)
    states = torch.randn(2, 5, target.config.hidden_size)
    logits, whole = head(states), target.get_output_embeddings()(states)
    assert head.out_features == logits.shape[-1] == VOCABULARY
    torch.testing.assert_close(logits[..., tokens], whole[..., tokens], atol=0.05, rtol=0.05)
    assert (logits == NEVER).sum() == 2 * 5 * (VOCABULARY - 4)
    rows = target.get_output_embeddings().weight[tokens]
    exact = TrimmedHead(rows, tokens, VOCABULARY)(states)
    torch.testing.assert_close(exact[..., tokens], whole[..., tokens])
    steps = rows_of(target, tokens) / rows_of(target, tokens).abs().amax(1, keepdim=True) * 127
    torch.testing.assert_close(steps, steps.round(), atol=1e-3, rtol=0)


def test_layers_are_spread_from_the_first_to_the_last():
    assert [spread(count, 30) for count in (1, 2, 3)] == [[29], [0, 29], [0, 14, 29]]


@pytest.mark.parametrize("known", [None, torch.tensor([2, 5, 9, 30])])
def test_lessons_that_are_kept_are_those_of_the_targets_pass(target, known):
    text, layers = own_text()[:4], (1, 2)
    counted = torch.ones_like(text, dtype=torch.bool)
    lessons = Lessons(target, layers, known)
    lessons._room = 1e9  # as on a GPU
    fresh = taught(target, layers, text, counted, 5, known)
    for index in (5, 6):
        found = lessons(text, counted, index, "batch")
        assert found.index == index and torch.equal(found.tokens, text)
        torch.testing.assert_close(found.features.float(), fresh.features, atol=0.05, rtol=0.02)
        torch.testing.assert_close(found.logits.float(), fresh.logits, atol=0.1, rtol=0.05)
        assert known is None or torch.equal(found.best, fresh.best)
    assert len(lessons._kept) == 1
    lessons._room = 0.0
    lessons(text, counted, 7, "another")
    assert len(lessons._kept) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("chain", "layers=1", "vocabulary=64"),
        ("eagle", "layout=eagle3", "vocabulary=64", "head=target"),
        ("dflash", "layers=1", "vocabulary=64"),
    ],
    ids=lambda words: words[0],
)
def test_the_recipe_writes_the_part_early_and_tells_what_is_accepted(words, ready, capsys):
    """On a named target, with files of its text; the part is written whole, in 8 bits, at two looks and at the end."""
    path, given = ready
    target, text = str(path / "models" / "target"), str(path / "run" / "selftext.npz")
    named = ["--target", target, "--text", text, "--held-out", text, "--windows", "0"]
    how = ["--rows", "2", "--length", "32", "--seconds", "900", "--tokens", "512", "--eight-bits"]
    asked = [words[0], *(each for option in words[1:] for each in ("--option", option))]
    capsys.readouterr()
    assert main([*given, *named, *how, "--output", str(path / "made"), *asked]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = json.loads(lines[-1])
    assert told["recipe"] == words[0] and told["tokens"] == 512
    assert sum(line.startswith("written to") for line in lines) == 3
    assert all(0 <= share <= 1 for share in told["by_depth"])
    assert told["tokens_a_step"] == sorted(told["tokens_a_step"])
    assert not (path / ".made.new").exists()
    assert in_eight_bits(path / "made" / "model.safetensors")
    config = json.loads((path / "made" / "config.json").read_text())
    assert config[FIELD] == digest_of(target)
