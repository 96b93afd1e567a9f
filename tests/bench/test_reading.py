"""Questions about long pages, who answers them, and what drafts on a part of the cache are reckoned to gain."""

import pytest

from engine.bench.contestants import Ours, plain
from engine.bench.long_times import told_times
from engine.bench.pass_times import Passes, below_one_prompt, times, together
from engine.bench.reading_tasks import KINDS, pages
from engine.core.prompt import PromptReading
from engine.methods.own_cache.drafter import OwnCacheDrafter
from engine.methods.reduced_cache.drafter import ReducedCacheDrafter
from engine.methods.reduced_cache.readers_suite import PLAIN, answered, readers
from engine.parts.loading import load_models
from presets import family


@pytest.fixture(scope="module")
def models():
    return load_models(family(), ReducedCacheDrafter.may_use(), "float32", "cpu")


def tokens_of(text):
    return len(text.split())


def test_the_answers_to_a_page_stand_all_over_it():
    made = pages(1500, tokens_of)
    assert [page.kind for page in made] == [*KINDS] and made == pages(1500, tokens_of)
    for page in made:
        longest = max((question for question, _ in page.asked), key=len)
        assert 1350 < tokens_of(page.text + longest) <= 1500
        places = [page.text.index(answer) / len(page.text) for _, answer in page.asked]
        assert places == pytest.approx([(n + 0.5) / 10 for n in range(10)], abs=0.03)
        assert all(page.text.count(answer) == 1 for _, answer in page.asked)


def test_readers_of_all_columns_answer_as_plain_decoding_does(models):
    """And of a few columns, some do not."""
    page, _ = pages(200, tokens_of)
    asked = page.asked[:2]
    prompts = [models.target.tokenizer(page.text + question).input_ids for question, _ in asked]
    for columns, alike in ((2000, True), (16, False)):
        for said in answered(models, readers(models, columns), prompts):
            assert len(said) > 7
            assert all(answer == said[PLAIN] for answer in said.values()) == alike


def test_what_a_draft_is_reckoned_to_gain():
    free = Passes(whole=10, check=10, choose=0, draft=1)
    assert free.gain(0.0) == 1 and free.gain(1.0) == pytest.approx(17 * 10 / 26)
    dear = Passes(whole=10, check=10, choose=0, draft=10)
    assert dear.gain(1.0) == 1, "a draft pass that takes as long as a whole one"
    slow = Passes(whole=10, check=10, choose=500, draft=1)
    assert slow.gain(1.0) == 1, "nor where choosing takes longer than all passes that are saved"


def test_times_of_a_long_text(models):
    prompt = models.target.tokenizer("The dog saw a red boat. " * 40).input_ids
    ours = Ours(OwnCacheDrafter, models, "snapkv", {"selector": "snapkv"})
    session = models.target.session(len(prompt))
    PromptReading(prompt[:-1]).fill(session)
    found = times(ours, session, prompt, 2)
    assert min(found.whole, found.check, found.draft) > 0
    (shared,) = below_one_prompt(models, session, prompt, 2)
    assert shared["mb"] == models.target.kv_bytes(len(prompt) - 1) / 1e6
    usual, other = together([Ours(plain(), models), ours], [prompt, prompt[:90]], 12)
    assert usual["equal"] == other["equal"] == 2


def test_the_length_from_which_it_pays_is_named():
    row = {"texts": 1, "selector": "snapkv", "whole": 9.0, "share": 0.5}
    row |= {"choosing": 0.1, "checking": 1.2, "kept": 0.9}
    rows = [row | {"length": 1000, "gain": 1.0}, row | {"length": 4000, "gain": 1.3}]
    assert "from 4,000 tokens on" in told_times(rows)
    assert "at none of these lengths" in told_times(rows[:1])
