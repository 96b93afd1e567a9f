"""Chimera: what a branch's trigrams read, what the exhibits show of them, and files of other targets."""

import pytest
import torch

from engine.core.sampling import Sampling
from tests.drafters.writing import built, steps_of, with_heads
from tests.verifiers.tiny import shared_models

VOCABULARY = 16


@pytest.fixture(scope="module")
def models():
    return shared_models(VOCABULARY)


def said(models, text, drafted):
    """Return logits and state after a text that ends with the root, and after the tokens drafted behind it. Each state
    is computed alone, over all the columns that it sees."""
    heads, model = models.part("chimera"), models.target
    true = model.session(64, (model.layers,)).prefill(text[:-1])
    columns = heads.encoder.columns(true, torch.arange(len(true)))
    whole = [text[0], text[0], *text, *drafted]
    for depth in range(len(drafted) + 1):
        end = len(text) + 2 + depth
        row = heads.trigram(model.embed(torch.tensor(whole[end - 3 : end])))
        place = torch.tensor([len(text) - 1 + depth])
        state = heads.encoder(row[None], place, columns)
        own = heads.encoder.columns(state, place)
        columns = tuple(torch.cat(pair, 1) for pair in zip(columns, own, strict=True))
    return model.head(heads.spoken(len(drafted), true[-1:], state))[0], state[0]


def shown_as_it_is(models, text, step):
    """Check the trigrams shown along the kept path, and how close the root's drafted state is to the true one."""
    model = models.target
    grams, near = step.tree.exhibits[:2]
    kept = step.verdict.accepted
    assert [row[0] for row in grams.rows] == list(range(1, len(kept) + 2))
    assert grams.rows[0][-1].id == text[-1] and grams.rows[0][-2].id == text[-2]
    true = model.session(64, (model.layers,)).prefill([*text, *step.output])[len(text) - 1]
    cosine = torch.cosine_similarity(said(models, text, [])[1], true, dim=0)
    assert near.series[0].y[0] == pytest.approx(float(cosine), abs=1e-4)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)], ids=["greedy", "drawn"])
def test_trees_hold_what_the_readouts_say_behind_each_branch(models, sampling):
    """A text of two tokens has no trigram of its own yet."""
    text, deepest = [3, 5], 0
    for step in steps_of(models, "chimera", text, 20, sampling, budget=9):
        for parent in range(-1, len(step.tree)):
            children = [step.tree.tokens[node] for node in step.tree.children(parent)]
            if children:
                path = [step.tree.tokens[node] for node in step.tree.path(parent)]
                best = said(models, text, path)[0].argsort(descending=True).tolist()
                assert children == best[: len(children)]
        deepest = max(deepest, step.tree.deepest)
        if len(step.tree):  # the last token may leave no room for a draft
            shown_as_it_is(models, text, step)
        text = text + step.output
    assert deepest > 1


def test_rows_that_are_forgotten_are_made_again(models, monkeypatch):
    whole = [step.tree.tokens for step in steps_of(models, "chimera", [3, 5], 20, budget=9)]
    monkeypatch.setattr("engine.methods.chimera.drafter.MOST_TRIGRAMS", 2)
    drafter = built("chimera", models, budget=9)
    assert [step.tree.tokens for step in steps_of(models, drafter, [3, 5], 20)] == whole
    assert len(drafter._rows) == 2


def test_behind_forced_tokens_it_goes_on_from_their_trigrams(models):
    tree = with_heads("chimera", models, budget=3).propose([3, 5, 7, 9], 8)
    assert set(tree.sources) == {"head 2"}
    best = said(models, [3, 5, 7], [9])[0].argsort(descending=True).tolist()
    assert tree.tokens == best[: len(tree)]
