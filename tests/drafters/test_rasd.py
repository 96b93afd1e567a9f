"""A draft model's tree merged with a datastore's: which nodes stay, where they hang, and which source found them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.sampling import Sampling, display_distribution
from engine.core.tree import ROOT
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.methods.rasd.retrieved_tree import frequent
from engine.methods.shared.datastore_part import Datastore
from tests.drafters.writing import steps_of, text_of
from tests.verifiers.tiny import shared_models

KEY = "rasd"
PROMPT = [3, 5, 7, 3, 5]
PATHS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), max_size=12)


@settings(max_examples=200, deadline=None)
@given(paths=PATHS, most=st.integers(1, 12))
def test_the_most_frequent_continuations_make_the_tree(paths, most):
    tree, below = frequent(paths, most), []
    for token, parent, times in zip(tree.tokens, tree.parents, tree.times, strict=True):
        below.append([*([] if parent == ROOT else below[parent]), token])
        assert times == sum(path[: len(below[-1])] == below[-1] for path in paths)
    every = {tuple(path[:n]) for path in paths for n in range(1, len(path) + 1)}
    assert len(tree) == min(most, len(every)) == len({tuple(path) for path in below})
    left_out = [
        sum(path[: len(p)] == list(p) for path in paths) for p in every - set(map(tuple, below))
    ]
    assert not left_out or max(left_out) <= min(tree.times)
    assert tree.inner == sorted({parent for parent in tree.parents if parent != ROOT})


class Laws(dict):
    """A reader for which each node has the same law: 0.6 for the first token, 0.3 for the second, 0.1 for the third."""

    def __missing__(self, node):
        return torch.tensor([0.6, 0.3, 0.1])


@settings(max_examples=100, deadline=None)
@given(paths=PATHS, least=st.sampled_from([0.0, 0.05, 0.2, 0.5]), most=st.integers(1, 6))
def test_pruning_keeps_the_likeliest_paths(paths, least, most):
    tree = frequent(paths, 30)
    tree.weigh(Laws())
    stay = tree.pruned(least, most)
    assert len(stay) == min(most, sum(q >= least for q in tree.q))
    for node in stay:
        assert tree.parents[node] in (ROOT, *stay) and tree.q[node] >= least
    gone = [q for node, q in enumerate(tree.q) if node not in stay and q >= least]
    assert not gone or max(gone) <= min(tree.q[node] for node in stay)


def path_to(tree, node):
    return [tree.tokens[place] for place in tree.path(node)]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)], ids=["greedy", "drawn"])
def test_the_merged_tree_node_by_node(sampling):
    """The draft model reads every path afresh, and the datastore is searched from end to end: q is right
    after every commit, retrieved paths occur in the datastore, and no likely one is missing."""
    models, least, most, length = shared_models(16, once=True), 0.05, 4, 3
    store = models.parts["datastore"].tokens.tolist()
    options = {"budget": 3, "retrieved": most, "length": length, "least_q": least}
    steps = steps_of(
        models, KEY, PROMPT, 28, sampling, this_text=False, longest_match=2, shortest_match=1, **options
    )  # fmt: skip
    context, sources = list(PROMPT), set()
    for step in steps:
        tree = step.tree
        for node, token in enumerate(tree.tokens):
            above = path_to(tree, node)[:-1]
            fresh = float(asked(models, context + above, sampling)[token])
            assert tree.q[node] == pytest.approx(fresh, abs=1e-4)
        mine = [node for node, source in enumerate(tree.sources) if "draft model" in source]
        assert mine == list(range(len(mine))), "the draft model's nodes come first"
        matched = max((n for n in (1, 2) if ends(store, context[-n:])), default=0)
        after = [store[end : end + length] for end in ends(store, context[-matched:])]
        after = after if matched else []
        ways = [path_to(tree, node) for node, s in enumerate(tree.sources) if "datastore" in s]
        for way in ways:
            assert any(path[: len(way)] == way for path in after)
            assert q_of(models, context, way, sampling) >= least - 1e-4
        every = {tuple(path[:n]) for path in after for n in range(1, len(path) + 1)}
        if len(every) <= 2 * most and len(PROMPT) + 28 - step.position - 1 >= length:
            qs = [q_of(models, context, list(way), sampling) for way in every]
            assert len(ways) >= min(most, sum(q >= least + 1e-4 for q in qs))
        sources |= set(tree.sources)
        context += step.output
    assert sources == {"draft model", "datastore", "draft model and datastore"}


@pytest.mark.parametrize("retrieved", [3, 12])
def test_what_was_retrieved_and_kept_is_read_once_and_rightly(retrieved):
    """The datastore holds the target's own text among wrong ones, so that long retrieved paths are
    kept while their siblings are pruned or refused; then q must still be that of the whole text."""
    models = shared_models(16, once=True)
    plain = PROMPT + text_of(steps_of(models, "none", PROMPT, 40))
    rng = np.random.default_rng(0)
    wrong = [
        token
        for at in range(0, len(plain) - 2, 2)
        for token in (*plain[at : at + 3], *rng.integers(0, 16, 3).tolist())
    ]
    store = Datastore(np.array([*wrong, *plain, *wrong]))
    models = replace(models, parts={**models.parts, "datastore": store})
    options = {"budget": 1, "retrieved": retrieved, "length": 5, "least_q": 0.0, "this_text": False}
    steps = steps_of(models, KEY, PROMPT, 40, shortest_match=2, longest_match=2, **options)
    context, from_it = list(PROMPT), 0
    for step in steps:
        tree = step.tree
        for node, token in enumerate(tree.tokens):
            fresh = asked(models, context + path_to(tree, node)[:-1], Sampling())
            assert tree.q[node] == pytest.approx(float(fresh[token]), abs=1e-4)
        from_it += sum(tree.sources[node] == "datastore" for node in step.verdict.accepted)
        context += step.output
    assert context == plain and from_it >= 10


def ends(store, run):
    size = len(run)
    return [at + size for at in range(len(store) - size + 1) if store[at : at + size] == run]


def asked(models, text, sampling):
    """Return q [V] of the draft model after a text, which it reads afresh."""
    logits = models.parts["draft"].session(len(text) + 1).extend(text)
    return display_distribution(logits, sampling)


def q_of(models, context, way, sampling):
    q = 1.0
    for place, token in enumerate(way):
        q *= float(asked(models, context + way[:place], sampling)[token])
    return q


def test_without_matches_it_is_the_draft_model_s_tree():
    models = shared_models(16, once=True)
    options = {"shortest_match": 16, "longest_match": 16, "this_text": False, "budget": 4}
    mine = steps_of(models, KEY, PROMPT, 30, **options)
    given = {"budget": 4, "depth": 12, "width": 4}
    others = steps_of(models, DySpecDrafter.key, PROMPT, 30, **given)
    assert [step.tree.tokens for step in mine] == [step.tree.tokens for step in others]


def test_the_text_itself_is_looked_up_too():
    """The draft model knows nothing of a run that only the prompt holds; its own tree of one node would
    not contain the run."""
    models, prompt = shared_models(16, once=True), [9, 4, 6, 2, 8, 9, 4, 6, 2, 8, 9, 4]
    steps = steps_of(
        models, KEY, prompt, 10, budget=1, retrieved=4, least_q=0.0, shortest_match=2, length=3
    )
    first = steps[0].tree
    found = [
        path_to(first, node) for node, source in enumerate(first.sources) if "this text" in source
    ]
    assert found == [[6], [6, 2], [6, 2, 8]]
    assert text_of(steps) == text_of(steps_of(models, "none", prompt, 10))


def test_it_shows_what_became_of_the_continuations():
    steps = steps_of(shared_models(16, once=True), KEY, PROMPT, 40, budget=2, least_q=0.02)
    tables = [
        e for s in steps for e in s.tree.exhibits if e.title == "Continuations in the datastore"
    ]
    outcomes = {row[-1] for table in tables for row in table.rows}
    assert outcomes == {"pruned", "merged in", "in both trees"}
