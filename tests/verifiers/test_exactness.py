"""Exactness by enumeration: every drawn tree, every outcome of the coins, every final token."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.core.rule import statuses
from engine.core.tree import ROOT, DraftTree
from engine.rules import verifier
from engine.rules.rejection import Rejection, SiblingTrial
from tests.verifiers import growers
from tests.verifiers.worlds import World, error, output_law

KINDS = ("one_hot", "iid", "without_replacement")
EXACT = 1e-6
few = settings(max_examples=12, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)


def consistent(tree, verdict):
    """Check what must hold of every verdict, whatever the rule."""
    status, path = verdict.status, verdict.accepted
    assert verdict.walk == [-1, *path]
    assert [tree.parents[node] for node in path] == verdict.walk[:-1]
    assert [n for n in range(len(tree)) if status[n] == "accepted"] == sorted(path)
    judged = {judgement.node for judgement in verdict.judgements}
    assert {n for n in range(len(tree)) if status[n] == "rejected"} == judged - set(path)
    for parent, child_status in zip(tree.parents, status, strict=True):
        assert child_status == "ignored" or parent in verdict.walk
    assert status == statuses(len(tree), path, verdict.judgements)
    for judgement in verdict.judgements:
        assert 0 <= judgement.accept <= 1
        if judgement.coin is not None:
            assert judgement.accept == min(1.0, judgement.p / judgement.q)
    refused_last = [n for n in tree.children(verdict.walk[-1]) if status[n] == "rejected"]
    assert verdict.final == ("recovered" if refused_last else "bonus")


@pytest.mark.parametrize("kind", KINDS)
@few
@given(seed=seeds, vocabulary=st.integers(2, 4), draws=st.integers(1, 3))
@example(seed=1, vocabulary=4, draws=4)
def test_siblings(kind, seed, vocabulary, draws):
    """One level. Draws without replacement may exceed q's tokens: the rest is judged one-hot."""
    draws = min(draws, vocabulary) if kind != "iid" else draws
    grow = growers.planned(lambda path: (kind, draws), 1)
    assert error(World(seed, vocabulary), grow, verifier("rejection"), 2, consistent) < EXACT


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=seeds,
    kinds=st.lists(st.sampled_from(KINDS), min_size=4, max_size=4),
    draws=st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
@example(seed=5, kinds=["iid"] * 4, draws=[2, 1, 1, 1])
@example(seed=5, kinds=["without_replacement"] * 4, draws=[2, 2, 0, 1])
@example(seed=7, kinds=["one_hot", *KINDS], draws=[2, 2, 2, 2])
def test_mixed_trees(seed, kinds, draws):
    """Two levels; kind and number of draws differ from parent to parent."""

    def plan(path):
        place = 0 if not path else 1 + path[0]
        return kinds[place], max(1, draws[place]) if not path else draws[place]

    world = World(seed, 3)
    assert error(world, growers.planned(plan, 2), verifier("rejection"), 3, consistent) < EXACT


@pytest.mark.parametrize("kind", KINDS)
def test_deep_chains(kind):
    for seed in range(3):
        grow = growers.planned(lambda path: (kind, 1), 3)
        assert error(World(seed, 3), grow, verifier("rejection"), 4, consistent) < EXACT


def test_p_equal_to_q_leaves_no_residual():
    """Draws from the target itself are always kept: accept is 1 whatever the coin."""
    world = World(3, 4)
    world.q = world.p
    refusals = []

    def look(tree, verdict):
        consistent(tree, verdict)
        refusals.extend(j for j in verdict.judgements if j.accept < 1)

    grow = growers.planned(lambda path: ("iid", 2), 2)
    assert error(world, grow, verifier("rejection"), 3, look) < EXACT
    assert not refusals


def test_disjoint_support():
    """Every token that the draft proposes is impossible for the target."""
    for kind in KINDS:
        world = World(0, 4)
        world.rows["p", ()] = torch.tensor([0.5, 0.5, 0.0, 0.0])
        world.rows["q", ()] = torch.tensor([0.0, 0.0, 0.3, 0.7])
        grow = growers.planned(lambda path, kind=kind: (kind, 2), 1)
        assert error(world, grow, verifier("rejection"), 2, consistent) < EXACT


@few
@given(seed=seeds, kind=st.sampled_from(KINDS))
def test_sampler_match(seed, kind):
    grow = growers.planned(lambda path: (kind, 2 if not path else 1), 2)
    assert error(World(seed, 3), grow, verifier("sampler_match"), 3, consistent) < EXACT


def test_sampler_match_needs_no_true_q():
    """Neither a wrong q nor a dropped draw can bias a rule that ignores q."""
    for wrong in (growers.drops_unlikely, growers.best_first, growers.sharpened):
        assert error(World(4, 3), wrong, verifier("sampler_match"), 2, consistent) < EXACT


# ---- Planted biases: the same enumeration must find each of them ------------------------------


class WithTrial(Rejection):
    def __init__(self, trial):
        super().__init__()
        self._trial = trial

    def trial_of(self, p, tree, draws):
        return self._trial(p, tree.laws)


class NoResidual(SiblingTrial):
    """A fault: after a rejection p stays the same."""

    def refuse(self, token, rule, drawn):
        before = self.p
        super().refuse(token, rule, drawn)
        self.p = before


class RefusedStaysInQ(SiblingTrial):
    """A fault: the rejected token is not taken out of q."""

    def refuse(self, token, rule, drawn):
        before = self.q(drawn.law).clone()
        super().refuse(token, rule, drawn)
        self._left[drawn.law] = before


class QNotRenormalised(SiblingTrial):
    def refuse(self, token, rule, drawn):
        before = self.q(drawn.law).clone()
        super().refuse(token, rule, drawn)
        before[token] = 0
        self._left[drawn.law] = before


class OnlyTheTokenLeaves(SiblingTrial):
    """A fault: siblings drawn from q are treated as one-hot, so the residual is p without the token instead of p -
    q."""

    def refuse(self, token, rule, drawn):
        super().refuse(token, "one_hot", drawn)


class JudgedByQ(SiblingTrial):
    """A fault: a one-hot guess is judged against the softmax that ranked it."""

    def weigh(self, token, drawn):
        return drawn.kind, float(self.p[token]), 0.6


def worst(rule, grow):
    return max(error(World(seed, 3, zeros=False), grow, rule, 2) for seed in range(6))


@pytest.mark.parametrize("kind", KINDS)
def test_skipping_the_residual_is_caught(kind):
    grow = growers.planned(lambda path: (kind, 1), 1)
    assert worst(verifier("rejection"), grow) < EXACT
    assert worst(WithTrial(NoResidual), grow) > 0.01


@pytest.mark.parametrize("trial", [RefusedStaysInQ, QNotRenormalised, OnlyTheTokenLeaves])
def test_a_wrong_q_after_a_refusal_is_caught(trial):
    grow = growers.planned(lambda path: ("without_replacement", 2), 1)
    assert worst(verifier("rejection"), grow) < EXACT
    assert worst(WithTrial(trial), grow) > 0.01


def test_treating_iid_draws_as_one_hot_is_caught():
    grow = growers.planned(lambda path: ("iid", 2), 1)
    assert worst(WithTrial(OnlyTheTokenLeaves), grow) > 0.01


def test_weighing_a_greedy_guess_by_its_softmax_is_caught():
    grow = growers.planned(lambda path: ("one_hot", 1), 1)
    assert worst(WithTrial(JudgedByQ), grow) > 0.01


@pytest.mark.parametrize(
    "wrong", [growers.drops_unlikely, growers.merges_repeats, growers.best_first, growers.sharpened]
)
def test_a_drafter_that_breaks_the_law_is_caught(wrong):
    assert worst(verifier("rejection"), wrong) > 0.003


@few
@given(seed=seeds)
def test_siblings_of_different_kinds_and_laws(seed):
    """A fixed token, then independent and exclusive draws from two laws, all under one parent."""

    def grow(oracle, world):
        tree, q, other = DraftTree(), world.q(()), world.row("other", ())
        tree.draw(ROOT, int(q.argmax()), "one_hot", None, "fixed")
        tree.draw(ROOT, oracle.choose(other), "iid", other, "first")
        left = q.clone()
        for _ in range(2):
            if float(left.sum()) > 0:
                token = oracle.choose(left)
                tree.draw(ROOT, token, "without_replacement", q, "second")
                left[token] = 0
        return tree

    assert error(World(seed, 3), grow, verifier("rejection"), 2, consistent) < EXACT


@few
@given(seed=seeds)
def test_a_tree_grafted_onto_another(seed):
    """A drawn chain, with a chain of fixed guesses merged into it on common prefixes."""

    def grow(oracle, world):
        tree = growers.planned(lambda path: ("iid", 1), 2)(oracle, world)
        guesses = DraftTree()
        guesses.chain([seed % 3, (seed // 3) % 3, 1], "guess")
        tree.graft(guesses)
        return tree

    assert error(World(seed, 3), grow, verifier("rejection"), 3, consistent) < EXACT


def test_the_example_of_the_law_of_exactness():
    """Dropping a drawn low-q token turns p = (.5, .3, .2) into (.55, .33, .12)."""
    world = World(0, 3)
    world.rows["p", ()] = torch.tensor([0.5, 0.3, 0.2])
    world.rows["q", ()] = torch.tensor([0.55, 0.35, 0.1])
    law = output_law(world, growers.drops_unlikely, verifier("rejection"), 1)
    assert [round(law[(token,)], 6) for token in range(3)] == [0.55, 0.33, 0.12]
