"""EAGLE: its tree holds the best of all drafted tokens, and true features replace drafted ones."""

import itertools
import random

import pytest
import torch

from engine.core.sampling import Sampling
from engine.core.tree import ROOT
from engine.methods.shared.eagle_reader import EagleReader
from engine.methods.shared.eagle_tree import Candidates
from engine.parts.loading import Models
from tests.drafters.writing import begun, built
from tests.engine.eagle_cells import LAYOUTS, TARGET, checkpoint, tensors_of
from tests.engine.tiny import tiny_model
from tests.grids import some

PROMPT = [3, 14, 15, 9, 2, 6, 5, 35, 8, 9, 7, 9]
GREEDY = Sampling()
COUNT = 12


EVERY = pytest.mark.parametrize("models", LAYOUTS, indirect=True, scope="module")
FEW = pytest.mark.parametrize(
    "models",
    some(LAYOUTS, lambda name: name in ("eagle", "eagle3")),
    indirect=True,
    scope="module",
)
"""``make test`` tries what depends on no cell with a head of the target's and with a head of its own over fewer tokens."""


@pytest.fixture(scope="module")
def models(request, tmp_path_factory):
    """The same target with a cell of each layout."""
    from engine.methods.eagle.part import KIND

    target = tiny_model("llama", num_hidden_layers=TARGET["num_hidden_layers"])
    config, shapes = LAYOUTS[request.param]()
    folder = checkpoint(tmp_path_factory.mktemp("cell"), config, tensors_of(shapes))
    return Models(target, {"eagle": KIND.load(str(folder), target, torch.float32, "cpu")})


def run(models, count=COUNT, prompt=PROMPT, sampling=GREEDY, **options):
    return begun(models, "eagle", prompt, count, sampling, **{"stop_below": 0.0, **options})


def steps_of(models, *args, **options):
    return list(run(models, *args, **options))


# ---- The tree ------------------------------------------------------------------------------------


def laws(seed: int, width: int, ties: bool):
    """Return a function from a path to the probabilities of its likeliest tokens. ties: whether many of them are
    equal."""
    rng, known = random.Random(seed), {}

    def law(path):
        if path not in known:
            shares = [rng.choice([1, 1, 2]) if ties else rng.random() ** 4 for _ in range(width)]
            whole = sum(shares) * (1.0 if ties else 1 + rng.random())
            known[path] = sorted((share / whole for share in shares), reverse=True)
        return known[path]

    return law


def grown(law, width: int, levels: int, count: int, prune: bool) -> Candidates:
    """Return a tree grown as in EAGLE-2, which reads the ``width`` best candidates of each level. prune: read only the
    candidates that can still be among the ``count`` kept ones."""
    found, level = Candidates(), [ROOT]
    for _ in range(levels):
        chances = [law(found.path(place)) for place in level]
        found.add(level, [list(range(len(one))) for one in chances], chances)
        last = found.depths[-1]
        every = [place for place in found.best(len(found)) if found.depths[place] == last]
        level = found.worth_reading(width, count) if prune else every[:width]
        if not level:
            break
    return found


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_not_read_could_not_be_kept(seed, ties):
    """The tree is that of the paper, which reads the full width of every level."""
    law = laws(seed, 4, ties)
    for count in (1, 3, 8, 20):
        kept = []
        for prune in (False, True):
            found = grown(law, 4, 5, count, prune)
            kept.append([(found.path(place), found.joint[place]) for place in found.best(count)])
        if ties:  # among equals, which ones fit into the width may differ
            kept = [[joint for _, joint in one] for one in kept]
        assert kept[0] == pytest.approx(kept[1]) if ties else kept[0] == kept[1]


@pytest.mark.parametrize("ties", [False, True])
def test_the_best_are_a_connected_tree(ties):
    for seed, count in itertools.product(range(6), (1, 2, 5, 13)):
        found = grown(laws(seed, 3, ties), 3, 4, count, True)
        best = set(found.best(count))
        assert len(best) == min(count, len(found))
        assert all(found.parents[place] in best | {ROOT} for place in best)


def test_what_cannot_come_is_no_candidate():
    found = Candidates()
    found.add([ROOT], [[5, 6, 7]], [[0.7, 0.3, 0.0]])
    assert found.tokens == [5, 6]


@FEW
def test_a_tree_stays_within_its_options(models):
    for step in steps_of(models, nodes=7, depth=3, top_k=2):
        tree = step.tree
        assert len(tree) <= 7 and tree.deepest <= 3
        assert all(len(tree.children(node)) <= 2 for node in range(-1, len(tree)))
    assert max(len(step.tree) for step in steps_of(models, nodes=7)) == 7
    one = steps_of(models, nodes=1)
    assert {len(step.tree) for step in one[:-1]} == {1}


# ---- The features --------------------------------------------------------------------------------


@EVERY
def test_a_level_in_one_pass_is_the_paths_read_one_by_one(models):
    """q of each node of a tree, against a reader that reads only the node's path."""
    step = next(run(models, nodes=12, depth=3, top_k=3))
    tree, target = step.tree, models.target
    drafter = built("eagle", models)
    session = target.session(64, drafter.feature_layers)
    features = session.prefill(PROMPT[:-1])
    assert tree.deepest == 3
    for node in range(len(tree)):
        reader = EagleReader(drafter.cell, target, Sampling())
        reader.learn(features)
        level = reader.catch_up(PROMPT)
        *above, last = [tree.tokens[one] for one in tree.path(node)]
        for depth, token in enumerate(above):
            level = reader.grow(level.states, [token], depth, None, [()])
        q = level.q[0]
        assert float(q[last]) == pytest.approx(tree.q[node], rel=1e-4)


@EVERY
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(1.0, seed=5)], ids=["greedy", "drawn"])
def test_each_step_drafts_as_if_it_were_the_first(models, sampling):
    """True features have replaced drafted ones, whatever was kept or refused before."""
    context, compared = list(PROMPT), 0
    for step in run(models, sampling=sampling, nodes=6):
        left = COUNT - len(context) + len(PROMPT)
        if left > 4:
            fresh = next(run(models, left, context, sampling, nodes=6))
            assert fresh.tree.tokens == step.tree.tokens
            assert fresh.tree.parents == step.tree.parents
            assert fresh.tree.q == pytest.approx(step.tree.q, rel=1e-4)
            compared += 1
        context += step.output
    assert compared > 2


@FEW
def test_what_is_drafted_of_what_the_target_reads(models):
    """One pass reads true features, and each further level takes one more."""
    steps = steps_of(models, nodes=12, depth=3, top_k=3)
    assert {step.passes["eagle"] for step in steps if step.tree.deepest == 3} == {3}
    stopped = steps_of(models, nodes=12, depth=3, top_k=3, stop_below=1.0)
    assert {step.passes["eagle"] for step in stopped if len(step.tree)} == {1}
    assert max(step.tree.deepest for step in stopped) == 1
    drawn = steps_of(
        models, nodes=12, depth=3, top_k=3, stop_below=1.0, sampling=Sampling(1.0, seed=1)
    )
    assert max(step.tree.deepest for step in drawn) == 3, "only a greedy draft stops"


@FEW
def test_a_step_that_proposes_nothing_shows_nothing_of_the_step_before(models):
    ends = [steps_of(models, count)[-1] for count in range(6, 13)]
    empty = [step for step in ends if not len(step.tree)]
    assert empty and not any(step.tree.exhibits for step in empty)


# ---- What is shown -------------------------------------------------------------------------------


@FEW
def test_the_exhibits_tell_the_tree_and_the_path(models):
    for step in steps_of(models, nodes=6)[:-1]:
        path, _, levels, ranking = (shown.make() for shown in step.tree.exhibits)
        assert sum(row[5] for row in levels.rows) == len(step.tree)
        assert levels.rows[0][1] == 1, "the text's last token alone"
        assert sum(row[4] == "yes" for row in ranking.rows) == len(step.tree)
        joints = [row[3] for row in ranking.rows]
        assert joints == sorted(joints, reverse=True)
        near, sure, likely = (series.y for series in path.series)
        assert len(near) == len(step.verdict.accepted) + 1 and -1 <= near[0] <= 1.0001
        for node, q, p in zip(step.verdict.accepted, sure[1:], likely[1:], strict=True):
            assert q == step.tree.q[node] and p >= 1 / models.target.vocab_size


@FEW
def test_confidence_is_counted_against_what_happened(models):
    steps = steps_of(models, nodes=6)
    curve = steps[-2].tree.exhibits[1].make()
    judged = [
        (step.tree, node)
        for step in steps[:-1]
        for parent in (ROOT, *step.verdict.accepted)
        for node in step.tree.children(parent)
    ]
    assert f"Of {len(judged)} drafted" in curve.note
    kept = sum(len(step.verdict.accepted) for step in steps[:-1])
    assert (kept > 0) == any(share > 0 for share in curve.series[0].y)
