"""DySpec lets drawn values shape its tree. It is exact because it chooses a slot before it draws."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from engine.core.chance import DraftChance
from engine.core.drafter import Start
from engine.core.sampling import Sampling
from engine.core.tree import DraftTree, Draw
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.rules import verifier
from tests.drafters.writing import usual
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import remembered_models

EXACT = 1e-5
PROMPT = (1, 2, 0, 1, 2)
RULE = verifier("rejection")
FULL = Sampling(1.0)


@pytest.fixture(scope="module")
def models():
    return remembered_models(4)


def error(models, cls, sampling=FULL, **options):
    given = {"budget": 3, "depth": 2, "width": 1, **options}
    return step_error(models, partial(usual, cls, models, **given), RULE, sampling, PROMPT)


@pytest.mark.parametrize(
    "options",
    [
        {"budget": 4, "width": 1},
        {"budget": 3, "depth": 3, "width": 2},
        {"budget": 5, "depth": 1},  # more slots than the vocabulary has tokens
    ],
)
def test_exact_whatever_the_budget(models, options):
    assert error(models, DySpecDrafter, **options) < EXACT


def test_exact_where_truncation_leaves_fewer_tokens_than_slots(models):
    narrow = Sampling(1.0, top_p=0.5)
    assert error(models, DySpecDrafter, narrow, budget=6) < EXACT


def test_the_slot_that_is_likeliest_to_be_reached_is_filled_first(models):
    """With this law everywhere: .6 below the first node, .4 for its sibling, .36 below the second."""
    law = torch.tensor([0.6, 0.3, 0.1, 0.0])
    drafter = usual("dyspec", models, budget=4, width=1, sharpness=1.0, stop_below=0.0)
    drafter.begin(Start(PROMPT, Sampling(), DraftChance(0)))
    drafter._reader = SimpleNamespace(
        read=lambda context, expected: law, expand=lambda nodes, tokens, parents: law[None]
    )
    tree = drafter.propose(PROMPT, 8)
    assert (tree.parents, tree.tokens) == ([-1, 0, -1, 1], [0, 0, 1, 0])


def without(tree: DraftTree, dropped: int) -> DraftTree:
    """Return the tree without one node that has no children."""
    kept = [node for node in range(len(tree)) if node != dropped]
    place = {node: index for index, node in enumerate(kept)} | {-1: -1}
    smaller = DraftTree(
        tokens=[tree.tokens[node] for node in kept],
        parents=[place[tree.parents[node]] for node in kept],
        depths=[tree.depths[node] for node in kept],
        q=[tree.q[node] for node in kept],
        sources=[tree.sources[node] for node in kept],
        laws=tree.laws,
    )
    for parent, siblings in tree.draws.items():
        draws = [Draw(place[d.node], d.kind, d.law) for d in siblings if d.node in place]
        if parent in place and draws:
            smaller.draws[place[parent]] = draws
    return smaller


def redrawn(tree: DraftTree, kind: str) -> DraftTree:
    """Return the tree with every draw declared to be of this kind."""
    for siblings in tree.draws.values():
        siblings[:] = [Draw(d.node, kind, None if kind == "one_hot" else d.law) for d in siblings]
    return tree


def least_likely_leaf(tree: DraftTree) -> int:
    leaves = [node for node in range(len(tree)) if not tree.children(node)]
    return min(leaves, key=lambda node: tree.q[node])


class Pruned(DySpecDrafter):
    """A fault: it grows one node too many and drops the leaf with the least q, although it was drawn."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        return without(tree, least_likely_leaf(tree))


class PrunedAndSaysSo(Pruned):
    """The tree of ``Pruned``, declared as one-hot guesses, which it has become."""

    draw_kinds = ("one_hot",)

    def propose(self, context, max_depth):
        return redrawn(super().propose(context, max_depth), "one_hot")


class Sorted(DySpecDrafter):
    """A fault: siblings are handed over likeliest first, not in the order drawn."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        for siblings in tree.draws.values():
            siblings.sort(key=lambda drawn: -tree.q[drawn.node])
        return tree


class StaysInQ(DySpecDrafter):
    """A fault: draws are declared as independent, although each was drawn without the tokens before it."""

    def propose(self, context, max_depth):
        return redrawn(super().propose(context, max_depth), "iid")


@pytest.mark.parametrize("wrong", [Pruned, Sorted, StaysInQ])
def test_a_planted_bias_is_caught(models, wrong):
    assert error(models, wrong) > 100 * EXACT


def test_a_pruned_tree_is_exact_when_judged_one_hot(models):
    assert error(models, PrunedAndSaysSo) < EXACT
