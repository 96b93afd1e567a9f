"""Lookahead: what each row of the window sees, the n-grams that result, and the pool."""

import copy
from itertools import pairwise

import pytest
import torch

from engine.core.seen import MOST_PROBES
from engine.methods.lookahead.drafter import NgramPool
from tests.drafters.writing import roots, steps_of, text_of
from tests.verifiers.tiny import shared_models

KEY, WINDOW, NGRAM = "lookahead", 3, 4
PROMPT = [3, 5, 7, 5]


def levels_shown(step):
    """Return the levels of the window, read from the table, without places that hold no column."""
    (table,) = step.tree.exhibits
    count = len(table.rows[0]) - 2
    found = [[row[1 + level] for row in table.rows] for level in range(count)]
    return [[cell.id for cell in cells if cell is not None] for cells in found]


def test_each_row_sees_its_column_and_the_chain_before_it():
    """Against the model itself, reading prefix, chain and column as one text."""
    models = shared_models(16)
    alone = copy.deepcopy(models.target.model)
    alone.set_attn_implementation("sdpa")
    steps = steps_of(models, KEY, PROMPT, 24, window=WINDOW, ngram=NGRAM)
    text = [*PROMPT, *text_of(steps)]
    before, grams = levels_shown(steps[0]), set()
    assert len(before) == 1 and set(before[0]) <= set(PROMPT)
    for step, following in pairwise(step for step in steps if step.tree.exhibits):
        said = []
        for column in range(WINDOW):
            read = [*text[: step.position], *before[0][: column + 1]]
            read += [level[column] for level in before[1:]]
            said.append(int(alone(torch.tensor([read])).logits[0, -1].argmax()))
        if len(before) == NGRAM - 1:
            grams |= set(zip(*before, said, strict=True))
        drafted = following.tree
        root = text[following.position - 1]
        for node in range(len(drafted)):
            path = [drafted.tokens[one] for one in drafted.path(node)]
            assert any(gram[0] == root and list(gram[1 : 1 + len(path)]) == path for gram in grams)
        now = levels_shown(following)
        assert now == [*before[1 if len(before) == NGRAM - 1 else 0 :], said]
        before = now
    assert grams and any(len(step.tree) for step in steps)
    assert roots(PROMPT, steps)[1] == text[steps[1].position - 1]


def test_the_window_stays_within_the_context():
    models = shared_models(16)  # with a context of 64
    steps = steps_of(models, KEY, PROMPT, 100, window=16, ngram=6)
    assert text_of(steps) == text_of(steps_of(models, "none", PROMPT, 100))
    assert steps[-1].stop == "context"
    assert max(len(step.draft.probes or ()) for step in steps) == 60


@pytest.mark.parametrize(("ngram", "columns"), [(2, 16), (5, 16), (6, 12)])
def test_all_levels_together_are_as_many_probes_as_a_pass_may_hold(ngram, columns):
    steps = steps_of(shared_models(16), KEY, PROMPT, 40, window=16, ngram=ngram)
    assert len(levels_shown(steps[0])[0]) == columns
    most = max(len(step.draft.probes or ()) for step in steps)
    assert most == columns * (ngram - 1) <= MOST_PROBES


@pytest.mark.parametrize("known", [False, True])
def test_the_prompts_own_ngrams_may_be_in_the_pool(known):
    step = steps_of(shared_models(16), KEY, [3, 5, 7, 9, 3], 6, ngram=3, prompt_ngrams=known)[0]
    assert step.tree.tokens == ([5, 7] if known else [])


def test_the_pool_holds_the_latest_of_each_first_token():
    pool = NgramPool(2)
    for ngram in ((1, 2, 3), (1, 4, 5), (1, 2, 3), (1, 6, 7), (2, 0, 0)):
        pool.add(ngram)
    assert pool.after(1) == [(6, 7), (2, 3)] and pool.after(3) == []
    assert len(pool) == 3
