"""The conditions of a sound draft tree, written as plainly as possible."""

from engine.core.tree import ROOT, DraftTree


def assert_sound(tree: DraftTree) -> None:
    """Assert that all arrays describe the same nodes, and that each node was drawn under its own parent."""
    size = len(tree.tokens)
    assert [len(a) for a in (tree.parents, tree.depths, tree.q, tree.sources)] == [size] * 4
    for node, parent in enumerate(tree.parents):
        assert ROOT <= parent < node, "parents come before their children"
        assert tree.depths[node] == (1 if parent == ROOT else tree.depths[parent] + 1)
    assert all(ROOT <= place < size for place in tree.draws)
    for place in range(ROOT, size):
        _assert_sound_draws(tree, place)


def _assert_sound_draws(tree: DraftTree, place: int) -> None:
    draws = tree.draws.get(place, [])
    children = {node for node, parent in enumerate(tree.parents) if parent == place}
    assert {drawn.node for drawn in draws} == children
    assert len({tree.tokens[child] for child in children}) == len(children), "equal siblings"
    for index, drawn in enumerate(draws):
        before = draws[:index]
        if drawn.kind == "one_hot":
            assert drawn.node not in {earlier.node for earlier in before}
        else:
            assert 0 <= drawn.law < len(tree.laws)
        if drawn.kind == "without_replacement":
            assert drawn not in before
