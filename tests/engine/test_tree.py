"""The draft tree against naive definitions, and the faults that check() must see."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tree import ROOT, DraftTree, Proposal
from tests.trees import trees

many = settings(max_examples=100, deadline=None, derandomize=True)


def ancestors(tree, node):
    found = []
    while node != ROOT:
        found.append(node)
        node = tree.parents[node]
    return found


@many
@given(tree=trees())
def test_random_trees_are_sound(tree):
    tree.check()
    assert len(tree) == len(tree.tokens) == len(tree.depths)
    for node in range(len(tree)):
        assert tree.depths[node] == len(ancestors(tree, node))


@many
@given(tree=trees())
def test_ancestor_mask(tree):
    mask = tree.ancestor_mask()
    assert mask.dtype == torch.bool and mask.shape == (len(tree) + 1, len(tree) + 1)
    for row in range(-1, len(tree)):
        seen = {-1, *(ancestors(tree, row) if row >= 0 else [])}
        for column in range(-1, len(tree)):
            assert bool(mask[row + 1, column + 1]) == (column in seen)


@many
@given(tree=trees())
def test_children_are_the_nodes_of_that_parent(tree):
    for place in range(-1, len(tree)):
        children = tree.children(place)
        assert sorted(children) == [n for n in range(len(tree)) if tree.parents[n] == place]
        assert len({tree.tokens[child] for child in children}) == len(children)


@many
@given(tree=trees(), depth=st.integers(0, 5))
def test_truncated(tree, depth):
    cut = tree.truncated(depth)
    cut.check()
    kept = [node for node in range(len(tree)) if tree.depths[node] <= depth]
    assert [cut.tokens, cut.q, cut.sources, cut.depths] == [
        [values[node] for node in kept]
        for values in (tree.tokens, tree.q, tree.sources, tree.depths)
    ]
    for place in [ROOT, *range(len(cut))]:
        was = tree.proposals.get(place if place == ROOT else kept[place])
        now = cut.proposals.get(place)
        if place != ROOT and cut.depths[place] == depth or depth == 0:
            assert now is None or not now.draws
        elif was is None:
            assert now is None
        else:
            assert (now.kind, now.q) == (was.kind, was.q)
            assert [kept[node] for node in now.draws] == was.draws
    assert cut.truncated(depth).tokens == cut.tokens


def test_repeats_are_counted_not_merged_away():
    q = torch.tensor([0.5, 0.5])
    tree = DraftTree()
    nodes = [tree.child(ROOT, "iid", token, "test", q) for token in (1, 0, 1, 1)]
    assert nodes == [0, 1, 0, 0] and tree.proposals[ROOT].draws == nodes
    assert tree.children(ROOT) == [0, 1] and tree.q == [0.5, 0.5]


def test_an_empty_tree():
    tree = DraftTree()
    tree.check()
    assert tree.depths == [] and tree.children(ROOT) == []
    assert tree.ancestor_mask().tolist() == [[True]]
    assert len(tree.truncated(0)) == 0


def sound() -> DraftTree:
    q = torch.tensor([0.2, 0.3, 0.5])
    tree = DraftTree()
    first = tree.child(ROOT, "without_replacement", 2, "test", q)
    tree.child(ROOT, "without_replacement", 0, "test", q)
    below = tree.child(first, "iid", 1, "test", q)
    tree.child(first, "iid", 1, "test", q)
    tree.child(below, "one_hot", 1, "test", None)
    tree.check()
    return tree


def two_alike(tree):
    tree.tokens[1] = tree.tokens[0]


def repeated(tree):
    tree.proposals[ROOT].draws.append(0)


FAULTS = {
    "an array too short": lambda tree: tree.q.pop(),
    "a source missing": lambda tree: tree.sources.pop(),
    "parent after child": lambda tree: tree.parents.__setitem__(0, 2),
    "its own parent": lambda tree: tree.parents.__setitem__(2, 2),
    "no such parent": lambda tree: tree.parents.__setitem__(2, -2),
    "in no proposal": lambda tree: tree.proposals[ROOT].draws.remove(1),
    "proposed elsewhere": lambda tree: tree.parents.__setitem__(2, 1),
    "two children alike": two_alike,
    "drawn without a q": lambda tree: setattr(tree.proposals[0], "q", None),
    "twice without replacement": repeated,
    "one-hot twice": lambda tree: tree.proposals[2].draws.append(3),
    "a draw that is no node": lambda tree: tree.proposals[0].draws.append(9),
    "a proposal of no node": lambda tree: tree.proposals.__setitem__(9, Proposal("one_hot")),
    "another's child": lambda tree: tree.proposals[2].draws.append(1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_sees(fault):
    tree = copy.deepcopy(sound())
    FAULTS[fault](tree)
    with pytest.raises(ValueError):
        tree.check()
