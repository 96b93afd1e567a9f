"""The matrix of successors, the trees read off it, and the bound on its memory."""

import copy
from collections import Counter
from dataclasses import replace

import pytest
import torch

from engine.core.memory import Memory
from engine.core.sampling import Sampling
from engine.core.tree import ROOT
from engine.methods.token_recycling.drafter import MOST_BYTES, SuccessorMatrix, static_shape
from tests.drafters.writing import roots, steps_of, text_of
from tests.verifiers.tiny import shared_models

KEY = "token_recycling"


def levels(shape):
    depths = []
    for parent, _ in shape:
        depths.append(1 if parent == ROOT else depths[parent] + 1)
    return [Counter(depths)[depth] for depth in range(1, max(depths) + 1)]


def test_the_shape_of_80_nodes_is_like_that_of_the_paper():
    found = levels(static_shape(80, 8, 6))
    assert found[:3] == [8, 21, 25] and len(found) == 6 and sum(found) == 80


@pytest.mark.parametrize("budget, width, depth", [(1, 8, 6), (16, 8, 6), (9, 2, 2), (40, 1, 5)])
def test_a_shape_is_a_tree_that_takes_early_candidates_first(budget, width, depth):
    shape = static_shape(budget, width, depth)
    most = sum(width**level for level in range(1, depth + 1))
    assert len(shape) == min(budget, most) and len(levels(shape)) <= depth
    for place, (parent, rank) in enumerate(shape):
        assert parent < place and rank < width
        assert rank == 0 or (parent, rank - 1) in shape[:place]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)], ids=["greedy", "drawn"])
def test_trees_are_read_off_the_latest_candidates_of_every_row(sampling):
    """The test keeps a matrix of its own, a dictionary, from the logits of all rows of all passes."""
    models, prompt, width = shared_models(16), [3, 5, 7], 3
    steps = steps_of(models, KEY, prompt, 40, sampling, budget=9, depth=3, successors=width)
    matrix: dict[int, list[int]] = {}
    for root, step in zip(roots(prompt, steps), steps, strict=True):
        tree = step.tree
        assert (
            tree.tokens[: len(tree.children(ROOT))]
            == matrix.get(root, [])[: len(tree.children(ROOT))]
        )
        for node in range(len(tree)):
            above = root if tree.parents[node] == ROOT else tree.tokens[tree.parents[node]]
            rank = int(tree.sources[node].removeprefix("successor ")) - 1
            assert matrix[above][rank] == tree.tokens[node]
        best = step.logits.argsort(-1, descending=True)[:, :width].tolist()
        matrix |= dict(zip([root, *tree.tokens], best, strict=True))
    assert {len(step.tree) for step in steps} >= {0, 9}, (
        "nothing is known first, everything at last"
    )


def test_a_refused_token_has_successors_too():
    models, memory, prompt = shared_models(16), Memory(), [3, 5, 7]
    steps = steps_of(models, KEY, prompt, 40, memory=memory, budget=9, successors=3)
    seen = {token for step in steps for token in step.tree.tokens}
    refused = seen - {7, *text_of(steps)}
    assert refused
    for token in refused:
        first = steps_of(models, KEY, [0, token], 4, memory=copy.deepcopy(memory), successors=3)[0]
        assert len(first.tree)


# ---- Its memory ---------------------------------------------------------------------------------


def logits_for(rows):
    """Return logits [R, V] whose likeliest tokens are these."""
    logits = torch.zeros(len(rows), 2000)
    for row, best in enumerate(rows):
        for rank, token in enumerate(best):
            logits[row, token] = 9.0 - rank
    return logits


@pytest.mark.parametrize("vocabulary", [16, 4096, 32_000, 152_064, 262_144])
def test_a_matrix_stays_below_two_megabytes(vocabulary):
    matrix = SuccessorMatrix(vocabulary, 8)
    assert matrix.nbytes <= MOST_BYTES == 2_000_000
    assert matrix.rows == vocabulary or matrix.rows > 20_000


def test_at_the_bound_the_row_that_was_filled_first_is_given_away():
    matrix = SuccessorMatrix(2000, 2, most_bytes=0)  # gives the fewest rows allowed
    tokens = list(range(matrix.rows))
    matrix.write(tokens, logits_for([(token + 1, 0) for token in tokens]))
    matrix.write([1500, 1], logits_for([(8, 9), (5, 6)]))
    assert matrix.row(0) == [] and matrix.row(1500) == [8, 9] and matrix.row(1) == [5, 6]
    assert matrix.row(2) == [3, 0] and matrix.filled == matrix.rows < 2000


def test_a_token_read_twice_in_a_pass_keeps_its_last_row():
    matrix = SuccessorMatrix(2000, 2)
    matrix.write([4, 5, 4], logits_for([(1, 2), (3, 4), (7, 8)]))
    assert matrix.row(4) == [7, 8] and matrix.row(5) == [3, 4] and matrix.filled == 2


def test_targets_and_widths_have_matrices_of_their_own():
    memory, models = Memory(), shared_models(16)
    other = replace(models, folders={"target": "elsewhere"})
    for some, width in ((models, 2), (other, 2), (models, 3)):
        assert not len(steps_of(some, KEY, [3, 5, 7], memory=memory, successors=width)[0].tree)


# ---- On the embedded target ---------------------------------------------------------------------
