"""A tree grown on the device equals the host's tree, and so does the shape that a pass needs to know."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.sampling import Sampling, display_distribution
from engine.core.tree import DraftTree
from engine.fast.gpu.device_tree import DeviceTree
from engine.fast.gpu.shape import NO_NODE, DeviceShape
from engine.fast.kernels.bits import unpack
from engine.fast.kernels.flat_tree import FlatTree
from engine.methods.ddtree.device import BestFirst
from engine.methods.shared.fixed_shape import best_first_tree
from tests.soundness import assert_sound
from tests.trees import trees

LAWS = [Sampling(), Sampling(0.7), Sampling(1.0, top_k=2), Sampling(1.0, top_p=0.6)]


def grown(logits, length, sampling, budget) -> tuple[DraftTree, DraftTree]:
    """(the tree as the device grows it, the tree as the host does)"""
    usable = (torch.arange(len(logits)) < length).double()
    ids, shape = BestFirst(len(logits), sampling, budget)(logits, usable)
    tree = DeviceTree.unseen("one_hot", "block", ids, shape)
    assert len(tree) == budget and tree.deepest == len(logits)
    tree.fetch()
    assert_sound(tree)
    return tree, best_first_tree(display_distribution(logits, sampling)[:length], budget)


def nodes_drawn(tree) -> dict[int, list[int]]:
    return {place: [drawn.node for drawn in draws] for place, draws in tree.draws.items()}


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 9999),
    rows=st.integers(1, 6),
    vocabulary=st.integers(1, 40),
    budget=st.integers(1, 70),
    levels=st.sampled_from([2, 5, 10**6]),
    sampling=st.sampled_from(LAWS),
    data=st.data(),
)
def test_node_for_node(seed, rows, vocabulary, budget, levels, sampling, data):
    """Also with many equal logits (few levels), and with fewer paths than the budget has nodes."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(levels, (rows, vocabulary), generator=generator) * (4 / levels)
    found, expected = grown(logits, data.draw(st.integers(1, rows)), sampling, budget)
    assert found.parents == expected.parents
    assert found.tokens == expected.tokens
    assert nodes_drawn(found) == nodes_drawn(expected)


def test_certain_tokens_are_a_chain():
    logits = torch.full((4, 6), -200.0)
    logits[range(4), [5, 1, 0, 2]] = 0.0
    found, expected = grown(logits, 4, Sampling(), 16)
    assert found.tokens == expected.tokens == [5, 1, 0, 2]
    assert found.parents == [-1, 0, 1, 2]


@settings(max_examples=100, deadline=None)
@given(tree=trees(50, 40), spare=st.integers(0, 3))
def test_the_shape_is_what_the_host_would_lay_out(tree, spare):
    depths = torch.tensor([*tree.depths, *[1] * spare], dtype=torch.int32)
    parents = torch.tensor([*tree.parents, *[NO_NODE] * spare], dtype=torch.int32)
    shape, size = DeviceShape.of(parents, depths, max(tree.depths, default=0)), len(tree)
    assert shape.own[: size + 1].tolist() == [0, *tree.depths]
    seen = unpack(shape.bits, size + spare + 1)[: size + 1, : size + 1]
    assert torch.equal(seen, tree.ancestor_mask())
    plain = DraftTree()
    for parent in tree.parents:
        plain.draw(parent, len(plain), source="test")
    flat = FlatTree.of(plain, 99)
    assert shape.first[: size + 2].tolist() == flat.first.tolist()
    assert shape.draws[:size].tolist() == flat.draws.tolist()
    assert shape.first[-1] == size
