"""Drafters on a tiny world that make every draw through the oracle. Some are wrong on purpose."""

from collections.abc import Callable

import torch

from engine.core.tree import ROOT, DraftTree
from engine.proof.enumeration import Oracle, Path
from tests.verifiers.worlds import World, path_of

Plan = Callable[[Path], tuple[str, int]]
"""The kind and number of draws after a path."""


def planned(plan: Plan, depth: int) -> Callable[[Oracle, World], DraftTree]:
    """A tree whose shape and kinds follow the plan, which sees no drawn value but the path."""

    def grow(oracle: Oracle, world: World) -> DraftTree:
        tree = DraftTree()
        level = [ROOT]
        for _ in range(depth):
            for parent in level:
                kind, draws = plan(path_of(tree, parent))
                draw_children(oracle, world, tree, parent, kind, draws)
            level = [child for parent in level for child in tree.children(parent)]
        return tree

    return grow


def draw_children(
    oracle: Oracle, world: World, tree: DraftTree, parent: int, kind: str, draws: int
) -> None:
    q = world.q(path_of(tree, parent))
    left = q.clone()
    for _ in range(draws):
        if kind == "one_hot":
            token = int(left.argmax())
        elif float(left.sum()) > 0:
            token = oracle.choose(left)
        else:  # more draws than q has tokens: any token that is not there yet
            there = {tree.tokens[child] for child in tree.children(parent)}
            token = next(t for t in range(world.vocabulary) if t not in there)
        tree.draw(parent, token, kind, None if kind == "one_hot" else q, "test")
        if kind != "iid":
            left[token] = -1 if kind == "one_hot" else 0


def drops_unlikely(oracle: Oracle, world: World) -> DraftTree:
    """A fault, the bias that the law of exactness forbids: draft one token, and throw it away if its q is low."""
    tree = DraftTree()
    q = world.q(())
    token = oracle.choose(q)
    if q[token] > 0.2:
        tree.draw(ROOT, token, "iid", q, "test")
    return tree


def merges_repeats(oracle: Oracle, world: World) -> DraftTree:
    """A fault: three i.i.d. draws, of which equal ones are handed over once only."""
    tree = planned(lambda path: ("iid", 3), 1)(oracle, world)
    tree.draws[ROOT] = list(dict.fromkeys(tree.draws[ROOT]))
    return tree


def best_first(oracle: Oracle, world: World) -> DraftTree:
    """A fault: two draws without replacement are handed over in order of q, not in the order drawn."""
    tree = planned(lambda path: ("without_replacement", 2), 1)(oracle, world)
    tree.draws[ROOT].sort(key=lambda drawn: -tree.q[drawn.node])
    return tree


def sharpened(oracle: Oracle, world: World) -> DraftTree:
    """A fault: a draw from q squared is handed over as a draw from q."""
    tree = DraftTree()
    q = world.q(())
    tree.draw(ROOT, oracle.choose(torch.square(q)), "iid", q, "test")
    return tree
