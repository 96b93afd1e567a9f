"""The draft tree against naive definitions, what it refuses, and how two trees are merged."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.exhibits import Words
from engine.core.tree import ROOT, DraftTree, Draw
from tests.soundness import assert_sound
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
def test_random_trees_are_sound_and_known_by_their_parents(tree):
    assert_sound(tree)
    mask, places = tree.ancestor_mask(), range(-1, len(tree))
    assert mask.dtype == torch.bool and mask.shape == (len(tree) + 1, len(tree) + 1)
    for place in places:
        above = ancestors(tree, place)
        assert place == ROOT or tree.depths[place] == len(above)
        assert mask[place + 1].tolist() == [one in {ROOT, *above} for one in places]
        assert sorted(tree.children(place)) == [n for n in places[1:] if tree.parents[n] == place]


@many
@given(tree=trees(), depth=st.integers(0, 5))
def test_truncated(tree, depth):
    cut = tree.truncated(depth)
    assert_sound(cut)
    kept = [node for node in range(len(tree)) if tree.depths[node] <= depth]
    assert [cut.tokens, cut.q, cut.sources, cut.depths] == [
        [values[node] for node in kept]
        for values in (tree.tokens, tree.q, tree.sources, tree.depths)
    ]
    for place in [ROOT, *range(len(cut))]:
        was = tree.draws.get(place if place == ROOT else kept[place], [])
        now = cut.draws.get(place, [])
        if place != ROOT and cut.depths[place] == depth or depth == 0:
            assert not now
        else:
            assert [(kept[one.node], one.kind) for one in now] == [
                (one.node, one.kind) for one in was
            ]
            assert [law_of(cut, one) for one in now] == [law_of(tree, one) for one in was]
    assert cut.truncated(depth).tokens == cut.tokens


def law_of(tree, drawn) -> int | None:
    """The id of the tensor that is a draw's law."""
    return None if drawn.law is None else id(tree.laws[drawn.law])


def test_repeats_are_counted_not_merged_away():
    q = torch.tensor([0.5, 0.5])
    tree = DraftTree()
    nodes = [tree.draw(ROOT, token, "iid", q, "test") for token in (1, 0, 1, 1)]
    assert nodes == [0, 1, 0, 0]
    assert tree.draws[ROOT] == [Draw(node, "iid", 0) for node in nodes]
    assert tree.children(ROOT) == [0, 1] and tree.q == [0.5, 0.5]


def test_an_empty_tree():
    tree = DraftTree()
    assert_sound(tree)
    assert tree.depths == [] and tree.children(ROOT) == []
    assert tree.ancestor_mask().tolist() == [[True]]
    assert len(tree.truncated(0)) == 0 and tree.deepest == 0
    assert tree.shown_law(ROOT) is None


def test_a_law_is_kept_once_however_often_it_is_drawn_from():
    first, second = torch.tensor([0.5, 0.5]), torch.tensor([0.5, 0.5])
    tree = DraftTree()
    for law in (first, second, first):
        node = tree.draw(ROOT, 1, "iid", law, "test")
    tree.draw(node, 0, "iid", second, "test")
    assert [law is known for law, known in zip(tree.laws, (first, second), strict=True)] == [
        True
    ] * 2
    assert [drawn.law for drawn in tree.draws[ROOT]] == [0, 1, 0]
    assert tree.shown_law(node) is second


def test_a_second_look_at_a_child_that_was_not_drawn_changes_nothing():
    q = torch.tensor([0.2, 0.8])
    tree = DraftTree()
    node = tree.draw(ROOT, 1, source="first", q=0.3)
    assert tree.draw(ROOT, 1, "one_hot", q, "second") == node
    assert tree.draws[ROOT] == [Draw(node, "one_hot", None)]
    assert (tree.sources, tree.q) == (["first"], [0.3])
    assert tree.draw(ROOT, 1, "iid", q, "third") == node, "but a draw of it is judged once more"
    assert tree.draws[ROOT][1].kind == "iid"
    assert_sound(tree)


def test_q_is_shown_from_the_law_unless_it_is_given():
    q = torch.tensor([0.25, 0.75])
    tree = DraftTree()
    for token, shown in ((0, None), (1, 0.5)):
        tree.draw(ROOT, token, "without_replacement", q, "test", shown)
    assert tree.q == [0.25, 0.5]


def sound() -> DraftTree:
    q, other = torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.6, 0.3, 0.1])
    tree = DraftTree()
    first = tree.draw(ROOT, 2, "without_replacement", q, "test")
    tree.draw(ROOT, 0, "without_replacement", q, "test")
    below = tree.draw(first, 1, "iid", other, "test")
    tree.draw(first, 1, "iid", other, "test")
    tree.draw(below, 1, source="test")
    return tree


Q = torch.tensor([0.2, 0.3, 0.5])
CONTRADICTIONS = {
    "a parent that is not there yet": lambda tree: tree.draw(4, 1),
    "a parent above the root": lambda tree: tree.draw(-2, 1),
    "drawn from nothing": lambda tree: tree.draw(ROOT, 1, "iid"),
    "drawn without replacement from nothing": lambda tree: tree.draw(3, 1, "without_replacement"),
    "twice without replacement": lambda tree: tree.draw(
        ROOT, 2, "without_replacement", tree.laws[0]
    ),
    "a branch below no node": lambda tree: tree.chain([1, 2], "test", under=9),
    "a tree below no node": lambda tree: tree.graft(sound(), under=9),
    "a tree whose draws were made here already": lambda tree: tree.graft(tree.truncated(1)),
}


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
def test_a_contradiction_is_refused_where_it_arises(contradiction):
    tree = sound()
    before = (list(tree.tokens), {place: list(draws) for place, draws in tree.draws.items()})
    with pytest.raises(ValueError):
        CONTRADICTIONS[contradiction](tree)
    assert (tree.tokens, tree.draws) == before
    assert_sound(tree)


def test_without_replacement_from_another_law_is_no_contradiction():
    tree = sound()
    tree.draw(ROOT, 2, "without_replacement", Q, "test")
    assert_sound(tree)


def two_alike(tree):
    tree.tokens[1] = tree.tokens[0]


FAULTS = {
    "an array too short": lambda tree: tree.q.pop(),
    "a source missing": lambda tree: tree.sources.pop(),
    "parent after child": lambda tree: tree.parents.__setitem__(0, 2),
    "its own parent": lambda tree: tree.parents.__setitem__(2, 2),
    "no such parent": lambda tree: tree.parents.__setitem__(2, -2),
    "a wrong depth": lambda tree: tree.depths.__setitem__(2, 1),
    "never drawn": lambda tree: tree.draws[ROOT].pop(),
    "drawn elsewhere": lambda tree: tree.parents.__setitem__(2, 1),
    "two children alike": two_alike,
    "drawn without a law": lambda tree: tree.draws[0].append(Draw(2, "iid", 7)),
    "twice without replacement": lambda tree: tree.draws[ROOT].append(tree.draws[ROOT][0]),
    "one-hot twice": lambda tree: tree.draws[2].append(Draw(3, "one_hot", None)),
    "a draw that is no node": lambda tree: tree.draws[0].append(Draw(9, "iid", 0)),
    "draws under no node": lambda tree: tree.draws.__setitem__(9, []),
    "another's child": lambda tree: tree.draws[2].append(Draw(1, "one_hot", None)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_tests_would_see_a_tree_that_is_not_sound(fault):
    tree = sound()
    assert_sound(tree)
    FAULTS[fault](tree)
    with pytest.raises(AssertionError):
        assert_sound(tree)


def by_path(tree) -> dict[tuple[int, ...], list]:
    """Return path of tokens -> the draws after it, in order."""
    found = {}
    for place, draws in tree.draws.items():
        path = tuple(tree.tokens[node] for node in tree.path(place))
        found[path] = [(tree.tokens[one.node], one.kind, law_of(tree, one)) for one in draws]
    return found


@many
@given(tree=trees(), above=st.lists(st.integers(0, 5), max_size=3))
def test_a_graft_is_the_same_tree_below_its_place(tree, above):
    whole = DraftTree()
    under = whole.chain(above, "above")
    places = whole.graft(tree, under)
    assert_sound(whole)
    assert len(whole) == len(above) + len(tree)
    expected = {(*above, *path): draws for path, draws in by_path(tree).items()}
    chain = {tuple(above[:n]): [(token, "one_hot", None)] for n, token in enumerate(above)}
    assert by_path(whole) == chain | expected
    for node, place in enumerate(places):
        assert whole.tokens[place] == tree.tokens[node]
        assert (whole.q[place], whole.sources[place]) == (tree.q[node], tree.sources[node])
        assert whole.depths[place] == tree.depths[node] + len(above)


def test_a_graft_merges_common_prefixes_and_stands_behind_what_is_there():
    q, other = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.1, 0.1, 0.8])
    tree, guest = DraftTree(), DraftTree()
    tree.exhibits, guest.exhibits = [Words(title="a", lines=[])], [Words(title="b", lines=[])]
    first = tree.draw(ROOT, 0, "iid", q, "tree")
    tree.draw(first, 1, source="tree")
    same = guest.draw(ROOT, 0, "iid", other, "guest")
    guest.draw(ROOT, 0, "iid", other, "guest")
    guest.draw(ROOT, 2, "iid", other, "guest")
    guest.draw(same, 1, source="guest")
    guest.draw(same, 2, "without_replacement", other, "guest", q=0.75)
    places = tree.graft(guest)
    assert_sound(tree)
    assert tree.tokens == [0, 1, 2, 2] and tree.parents == [-1, 0, -1, 0]
    assert places == [0, 2, 1, 3]
    assert tree.sources == ["tree", "tree", "guest", "guest"]
    assert tree.q == [0.5, None, float(other[2]), 0.75]
    assert by_path(tree) == {
        (): [(0, "iid", id(q)), *[(token, "iid", id(other)) for token in (0, 0, 2)]],
        (0,): [(1, "one_hot", None), (2, "without_replacement", id(other))],
    }
    assert [exhibit.title for exhibit in tree.exhibits] == ["a", "b"]
    assert [exhibit.title for exhibit in guest.exhibits] == ["b"]


def test_a_chain_is_a_branch_of_one_hot_draws():
    tree = DraftTree()
    middle = tree.chain([4, 2], "above", q=[0.5])
    last = tree.chain([2, 2], "below", under=middle)
    assert tree.chain([], "nothing", under=last) == last == 3
    assert tree.parents == [-1, 0, 1, 2] and tree.q == [0.5, None, None, None]
    assert {drawn.kind for draws in tree.draws.values() for drawn in draws} == {"one_hot"}
    assert tree.path(last) == [0, 1, 2, 3] and tree.path(ROOT) == []
    assert (tree.child(0, 2), tree.child(0, 4), tree.child(ROOT, 4)) == (1, None, 0)
    assert_sound(tree)
