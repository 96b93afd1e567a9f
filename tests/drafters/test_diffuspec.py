"""DiffuSpec: candidates, the search, the causal proxy, the length of drafts."""

import itertools
import math

import numpy as np
import pytest
import torch

from engine.core.exhibits import Choice
from engine.methods.diffuspec.causal_proxy import CausalProxy
from engine.methods.diffuspec.path_search import DraftLength, best_path, columns_of
from engine.methods.shared.datastore_part import Datastore
from tests.drafters.writing import steps_of
from tests.verifiers.tiny import shared_models


def test_candidates_hold_the_mass_and_an_end_of_text():
    marginals = torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.97, 0.01, 0.02, 0.0]])
    tokens = [[c.token for c in column] for column in columns_of(marginals, 0.75, 3, [3])]
    assert tokens == [[0, 1, 3], [0]], "what has no chance is no candidate"
    assert [len(column) for column in columns_of(marginals, 1.0, 2)] == [2, 2]
    alone = columns_of(marginals, 0.0, 3)
    assert [[c.token for c in column] for column in alone] == [[0], [0]], "one is always left"


def test_a_wide_beam_finds_the_best_path_and_a_weight_of_one_the_likeliest():
    draw = torch.Generator().manual_seed(1)
    marginals = torch.rand(4, 5, generator=draw).softmax(-1)
    table = torch.rand(6, 5, generator=draw).log_softmax(-1)

    def causal(path, token):
        return float(table[path[-1] if path else 5, token])

    columns = columns_of(marginals, 1.0, 5)
    scores = {}
    for tokens in itertools.product(range(5), repeat=4):
        said = sum(causal(tokens[:at], token) for at, token in enumerate(tokens))
        scores[tokens] = 0.4 * sum(math.log(marginals[at, t]) for at, t in enumerate(tokens))
        scores[tokens] += 0.6 * said
    found = best_path(columns, causal, 0.4, 5**4)
    assert found.tokens == max(scores, key=scores.get)
    assert found.score == pytest.approx(max(scores.values()), abs=1e-5)
    assert found.tokens == tuple(columns[at][row].token for at, row in enumerate(found.rows))
    assert best_path(columns, causal, 1.0, 1).tokens == tuple(marginals.argmax(-1).tolist())


def test_the_search_ends_where_the_best_path_ends_a_text():
    columns = [[Choice(0, 0.9)], [Choice(3, 0.9), Choice(1, 0.1)], [Choice(1, 0.2)]]
    found = best_path(columns, lambda path, token: 0.0, 1.0, 4, frozenset({3}))
    assert found.tokens == (0, 3)
    columns[1] = [Choice(1, 0.9), Choice(3, 0.05)]
    assert best_path(columns, lambda path, token: 0.0, 1.0, 4, frozenset({3})).tokens == (0, 1, 1)


def test_the_proxy_is_a_distribution_that_knows_corpus_and_text():
    corpus, text = Datastore(np.array([2, 3, 2, 4, 2, 3])), [1, 2, 3, 1, 2, 4, 1, 2, 3]
    proxy = CausalProxy(3, 7, corpus)
    for length in (4, 6, 9):
        proxy.read(text[:length])
    for before in ([], [1], [1, 2], [6, 2], [5, 6]):
        chances = [math.exp(proxy.log_p(before, token)) for token in range(7)]
        assert sum(chances) < 1.05 and min(chances) > 0
    at_once = CausalProxy(3, 7, corpus)
    at_once.read(text)
    assert proxy.log_p([1, 2], 3) == at_once.log_p([1, 2], 3)
    # 1 2 came three times, followed by 3 twice, in the text only; 2 came six times, followed by 3 four times
    none = (4 + 2 / 7) / (15 + 2)  # two of nine tokens of the text, two of six of the corpus
    one = (4 + 2 * none) / (6 + 2)
    assert math.exp(proxy.log_p([], 3)) == pytest.approx(none)
    assert math.exp(proxy.log_p([2], 3)) == pytest.approx(one)
    assert math.exp(proxy.log_p([1, 2], 3)) == pytest.approx((2 + 2 * one) / (3 + 2))


def test_drafts_grow_while_all_is_kept_and_not_otherwise():
    length = DraftLength(shortest=2, longest=7, growth=2, recent=0.5)
    assert length.next() == 2
    length.see(2, 2)
    assert length.next() == 4
    length.see(4, 4)
    assert (length.drafted, length.next()) == (3.0, 5)
    length.see(5, 0)
    assert (length.drafted, length.kept, length.next()) == (4.0, 1.5, 4)
    for _ in range(9):
        length.see(7, 7)
    assert length.next() == 7


def test_the_lattice_shows_the_drafted_path():
    steps = steps_of(shared_models(16), "diffuspec", [3, 5, 7], 24, length=3, shortest=3)
    for step in steps:
        if not len(step.tree):
            continue
        lattice, gauge = step.tree.exhibits
        chosen = [column[row] for column, row in zip(lattice.columns, lattice.path, strict=True)]
        assert [choice.token for choice in chosen] == step.tree.tokens
        assert [choice.p for choice in chosen] == step.tree.q
        assert gauge.value == len(step.tree), "what is drafted, not what was wanted"
