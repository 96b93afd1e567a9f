"""verify_tree: the same verdicts as the engine's verifiers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.tree import DraftTree
from engine.fast.kernels.flat_tree import FlatTree
from engine.fast.kernels.verify_tree import NOT_A_NUMBER, RULES, verify_tree_reference
from tests.kernels.cases import coins_of, noise_of, peaked, same_verdict, with_random_q
from tests.kernels.device import verify_tree_triton
from tests.trees import trees

VOCABULARY = 21  # one whole block of the vocabulary, and part of another


def kernel(*arguments):
    return verify_tree_triton(*arguments, block=16)


@settings(max_examples=20, deadline=None)
@given(trees(VOCABULARY, 10), st.integers(0, 2**31), st.sampled_from(RULES))
def test_verdicts_are_the_engines(tree, seed, rule):
    torch.manual_seed(seed)
    tree = with_random_q(tree, VOCABULARY)
    same_verdict(kernel, rule, tree, peaked(len(tree) + 1, VOCABULARY), seed)


@pytest.mark.parametrize("rule", RULES)
def test_rows_and_noise_that_are_parts_of_longer_ones(rule):
    """As a pass provides them: logits of a padded vocabulary, noise with rows to spare."""
    torch.manual_seed(2)
    tree = siblings("without_replacement", peaked(VOCABULARY))

    def strided(rule, p, flat, coins, noise):
        wide, longer = (torch.full((len(x) + 2, VOCABULARY + 7), 9.0) for x in (p, noise))
        wide[: len(p), :VOCABULARY], longer[: len(noise), :VOCABULARY] = p, noise
        parts = wide[: len(p), :VOCABULARY], longer[: len(noise), :VOCABULARY]
        return kernel(rule, parts[0], flat, coins, parts[1])

    for seed in range(3):
        same_verdict(strided, rule, tree, peaked(len(tree) + 1, VOCABULARY), seed)


def siblings(kind: str, q, tokens=(3, 1, 2)) -> DraftTree:
    tree = DraftTree()
    for token in tokens:
        tree.draw(-1, token, kind, q, "test")
    return tree


@pytest.mark.parametrize("kind", ["one_hot", "iid", "without_replacement"])
def test_nothing_is_left_of_p_or_q(kind):
    """All of p on one draw; and more draws than q holds tokens."""
    p = torch.zeros(4, 6)
    p[:, 3] = 1
    q = None if kind == "one_hot" else torch.tensor([0, 0, 0, 1.0, 0, 0])
    for tokens in ((3,), (1, 3), (3, 1, 2)):
        tree = siblings(kind, q, tokens)
        for seed in range(3):
            same_verdict(kernel, "rejection", tree, p[: len(tree) + 1], seed)


def test_siblings_without_replacement_over_many_refusals():
    torch.manual_seed(1)
    q = peaked(VOCABULARY)
    tree = siblings("without_replacement", q, torch.multinomial(q, 8).tolist())
    for seed in range(4):
        same_verdict(kernel, "rejection", tree, peaked(len(tree) + 1, VOCABULARY), seed)


def test_the_trees_q_is_left_alone():
    q = peaked(VOCABULARY)
    tree = FlatTree.of(siblings("without_replacement", q), VOCABULARY)
    before = tree.q.clone()
    kernel("rejection", peaked(4, VOCABULARY), tree, coins_of(0, 4), noise_of(0, 1, VOCABULARY))
    assert torch.equal(tree.q, before)


@pytest.mark.parametrize("fault", ["coins", "rows", "q"])
def test_a_planted_fault_is_seen(fault):
    torch.manual_seed(3)
    q, p = peaked(VOCABULARY), peaked(4, VOCABULARY)
    right = FlatTree.of(siblings("without_replacement", q), VOCABULARY)
    coins, noise = torch.tensor([0.999999] * 4, dtype=torch.float64), noise_of(0, 1, VOCABULARY)
    expected = verify_tree_reference("rejection", p, right, coins, noise)
    found = kernel("rejection", p, right, coins, noise)
    torch.testing.assert_close(found.accept, expected.accept)
    if fault == "coins":
        found = kernel("rejection", p, right, coins * 0, noise)
        assert found.result.tolist() != expected.result.tolist()
    else:
        wrong_q = peaked(VOCABULARY) if fault == "q" else q
        wrong = FlatTree.of(siblings("without_replacement", wrong_q), VOCABULARY)
        rows = p.roll(1, 0) if fault == "rows" else p
        found = kernel("rejection", rows, wrong, coins, noise)
        with pytest.raises(AssertionError):
            torch.testing.assert_close(found.accept, expected.accept)


def broken_rows(tree: DraftTree, place: int, fill: str) -> torch.Tensor:
    """Return rows of which one holds NaN: everywhere, as after a softmax, or in a few of its entries."""
    rows = peaked(len(tree) + 1, VOCABULARY)
    if fill == "all":
        rows[place] = float("nan")
    else:
        rows[place, [5, 18]] = float("nan")
    return rows


@pytest.mark.parametrize("fill", ["all", "some"])
@pytest.mark.parametrize("rule", RULES)
def test_nan_ends_the_walk_with_a_token_of_the_vocabulary(rule, fill):
    torch.manual_seed(4)
    tree = DraftTree()
    for kind, parent, token in (("iid", -1, 3), ("iid", 0, 5), ("one_hot", 1, 0)):
        tree.draw(parent, token, kind, None if kind == "one_hot" else peaked(VOCABULARY))
    flat, coins = FlatTree.of(tree, VOCABULARY), torch.zeros(4, dtype=torch.float64)
    for place in range(len(tree) + 1):
        rows, noise = broken_rows(tree, place, fill), noise_of(0, 3, VOCABULARY)
        for node, token in enumerate(tree.tokens[:place]):  # the walk reaches the place
            rows[node] = torch.nn.functional.one_hot(torch.tensor(token), VOCABULARY)
        found = kernel(rule, rows, flat, coins, noise)
        expected = verify_tree_reference(rule, rows, flat, coins, noise)
        assert found.result.tolist() == expected.result.tolist()
        assert found.status.tolist() == expected.status.tolist()
        kept, token, final, _ = found.result.tolist()
        assert (kept, final) == (place, NOT_A_NUMBER)
        assert 0 <= token < VOCABULARY
        rows[place] = 1.0
        assert kernel(rule, rows, flat, coins, noise).result[2] != NOT_A_NUMBER


@pytest.mark.parametrize("rule", ["greedy", "sampler_match"])
def test_of_rows_of_minus_infinities_the_first_is_taken(rule):
    flat = FlatTree.of(DraftTree(), VOCABULARY)
    rows = torch.full((1, VOCABULARY), float("-inf"))
    found = kernel(rule, rows, flat, None, noise_of(0, 0, VOCABULARY))
    assert found.result.tolist() == [0, 0, 0, 0]
