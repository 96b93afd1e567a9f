"""VocabTrim: the cut head gives the whole head's logits, tokens it lacks are never drafted, and the list is checked."""

import gc
import json
import weakref

import pytest
import torch

from engine.core.constraint import Constraint
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.fast.cpu import store
from engine.methods.shared.draft_model import DraftReader
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.methods.vocabtrim.drafter import VocabTrimDrafter, kept_tokens
from engine.model import cut_head
from engine.model.cut_head import head_bytes, with_head
from engine.parts.digest import FIELD
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import steps_of, text_of
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model, tiny_model

PROMPT = [3, 5, 7, 3, 5]
COUNTS = torch.arange(VOCABULARY).flip(0)  # token 0 is the most frequent


@pytest.mark.parametrize("architecture", [*CONFIGS])
def test_a_cut_head_gives_the_logits_of_its_rows(architecture):
    whole = tiny_model(architecture, seed=1)
    tokens = torch.tensor([7, 2, 30, 11])
    cut = with_head(whole, tokens)
    assert cut.vocab_size == 4 and head_bytes(cut) * VOCABULARY == head_bytes(whole) * 4
    expected, _ = whole.session(16).feed(PROMPT, range(-1, 4))
    found, _ = cut.session(16).feed(PROMPT, range(-1, 4))
    assert torch.allclose(found, expected[:, tokens], atol=1e-5)
    again, _ = whole.session(16).feed(PROMPT, range(-1, 4))
    assert torch.allclose(again, expected) and whole.vocab_size == VOCABULARY
    assert with_head(whole, tokens) is cut


@pytest.mark.parametrize("static", [False, True])
def test_every_way_of_reading_can_be_cut(static):
    """Compiled passes, and static buffers."""
    module = tiny_hf_model(seed=1)
    whole = language_model(module, None, "draft", static=static)
    cut = with_head(whole, torch.tensor([7, 2, 30, 11]))
    assert type(cut) is type(whole)
    expected, _ = whole.session(16).feed(PROMPT, range(-1, 4))
    found, _ = cut.session(16).feed(PROMPT, range(-1, 4))
    assert torch.allclose(found, expected[:, [7, 2, 30, 11]], atol=1e-4)


def test_few_cut_models_are_held(monkeypatch):
    """A model that is dropped takes its compiled graph with it."""
    monkeypatch.setattr(cut_head, "_MOST_CUTS", 1)
    whole = language_model(tiny_hf_model(num_hidden_layers=1), None, "draft")
    graphs = {id(one) for one in store._models}
    cut = with_head(whole, torch.tensor([7, 2]))
    (graph,) = (weakref.ref(one) for one in store._models if id(one) not in graphs)
    del cut
    gc.collect()
    assert graph() is not None
    with_head(whole, torch.tensor([7, 3]))
    gc.collect()
    assert graph() is None


def test_the_share_is_one_of_a_few(models):
    """A page's visitors thus cannot have an unlimited number of heads compiled."""

    def head(kept):
        settings = resolve("vocabtrim", VocabTrimDrafter.options, {"kept": kept})
        return VocabTrimDrafter.build(settings, models).draft

    assert len({head(0.4 + place / 100) for place in range(20)}) == 1
    assert head(0.26) is head(0.25) is not head(0.5)


@pytest.fixture(scope="module")
def models():
    target = tiny_model()
    parts = {"draft": tiny_model(), "vocabulary": Vocabulary.counted(COUNTS)}
    return Models(target, parts)


def test_q_is_the_softmax_over_what_is_kept(models):
    tokens = torch.tensor([7, 2, 30, 11])
    cut = with_head(models.part("draft"), tokens)
    reader = DraftReader(cut, VOCABULARY, Sampling(0.7), head_tokens=tokens)
    q = reader.read(PROMPT)
    logits = models.target.session(16).extend(PROMPT)
    assert torch.allclose(q[tokens], (logits[tokens] / 0.7).softmax(-1), atol=1e-6)
    assert q.shape == (VOCABULARY,) and q.sum() == pytest.approx(1) and (q > 0).sum() == 4


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=2)])
def test_what_the_head_lacks_is_written_and_never_drafted(models, sampling):
    """The draft is the target, so at temperature 0 every refusal is due to a missing row."""
    steps = steps_of(models, "vocabtrim", PROMPT, 60, sampling, length=4, kept=0.5)
    drafted = {token for step in steps for token in step.tree.tokens}
    kept = set(range(round(VOCABULARY / 2)))
    assert drafted <= kept and not set(text_of(steps)) <= kept
    lacking = [token for token in text_of(steps) if token not in kept]
    shown = [
        cell["token"] for step in steps for (cell,) in step.tree.exhibits[-1].to_dict(str)["rows"]
    ]
    assert shown == lacking
    if sampling.greedy:
        refused = [step.output[-1] for step in steps if step.final == "recovered"]
        assert refused and not set(refused) & kept


def test_the_whole_head_drafts_as_a_chain_does(models):
    whole = steps_of(models, "vocabtrim", PROMPT, 40, length=3, kept=1.0, stop_below=0.25)
    chain = steps_of(models, "chain", PROMPT, 40, length=3, stop_below=0.25)
    assert [step.tree.tokens for step in whole] == [step.tree.tokens for step in chain]
    gauge = whole[0].tree.exhibits[0]
    assert gauge.value == gauge.maximum


def test_the_most_frequent_tokens_are_kept_first():
    vocabulary = Vocabulary.counted(torch.tensor([5, 0, 9, 0, 1]))
    assert vocabulary.tokens.tolist() == [2, 0, 4, 1, 3]
    assert vocabulary.coverage(2) == pytest.approx(14 / 15)
    assert kept_tokens(vocabulary, 0.4, 5).tolist() == [2, 0]
    assert kept_tokens(vocabulary, 0.5, 4).tolist() == [2, 0], "a head of four rows has no token 4"
    assert kept_tokens(vocabulary, 0.001, 5).tolist() == [2]


def test_the_part_is_read_as_it_was_written(tmp_path, models):
    counts = torch.zeros(VOCABULARY, dtype=torch.int64)
    counts[[9, 4]] = torch.tensor([3, 8])
    Vocabulary.counted(counts).save(tmp_path / "vocabulary", "0123")
    assert json.loads((tmp_path / "vocabulary" / "config.json").read_text())[FIELD] == "0123"
    found = kind_of("vocabulary").load(str(tmp_path / "vocabulary"), models.target, None, "cpu")
    assert found.tokens[:3].tolist() == [4, 9, 0] and found.counts[:3].tolist() == [8, 3, 0]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no list of frequent tokens"),
        ("[]", "no list of frequent tokens"),
        ('{"tokens": [1], "counts": []}', "no list of frequent tokens"),
        ('{"tokens": [1, 1], "counts": [2, 1]}', "no list of frequent tokens"),
        ('{"tokens": [1.5], "counts": [2]}', "no list of frequent tokens"),
        ('{"tokens": [], "counts": []}', "no list of frequent tokens"),
        (f'{{"tokens": [1], "counts": [{10**30}]}}', "no list of frequent tokens"),
        ('{"tokens": [61], "counts": [2]}', "does not fit the vocabulary"),
    ],
)
def test_a_bad_part_is_told_in_one_sentence(tmp_path, models, content, told):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(UserError, match=told) as error:
        kind_of("vocabulary").load(str(tmp_path), models.target, None, "cpu")
    assert str(error.value).endswith(".") and "\n" not in str(error.value)


def test_a_constraint_that_allows_only_what_is_cut_leaves_a_law(models):
    """Every allowed token is then drafted with the same probability."""

    class Only(Constraint):
        def commit(self, tokens):
            pass

        def allowed(self, path):
            return torch.arange(VOCABULARY) >= 50

    settings = resolve("vocabtrim", VocabTrimDrafter.options, {"kept": 0.2})
    tokens = VocabTrimDrafter.build(settings, models).head_tokens
    cut = with_head(models.part("draft"), tokens)
    reader = DraftReader(
        cut, VOCABULARY, Sampling(1.0), constraint=Only(), prompt_length=5, head_tokens=tokens
    )
    q = reader.read(PROMPT)
    assert q[:50].sum() == 0 and q.sum() == pytest.approx(1)
