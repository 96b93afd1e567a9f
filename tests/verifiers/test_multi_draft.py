"""Several drafts per place: SpecTr's rule, how often rules keep a draft, and the transport bound."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from engine.core.schemes import Scheme, scheme_of
from engine.core.tree import ROOT, DraftTree
from engine.rules import verifier
from engine.rules.expected_acceptance import rejection_keeps
from engine.rules.rejection import normalised
from engine.rules.spectr import KSequentialTrial, SpecTr, factor_and_share
from engine.rules.transport import SEPARATE, bound, transport_bound
from tests.verifiers import growers
from tests.verifiers.test_exactness import EXACT, consistent, worst
from tests.verifiers.worlds import World, accepted, error, output_law

KINDS = ("iid", "without_replacement")
few = settings(max_examples=6, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)


def pairs(count, vocabulary, seed=0):
    """Random p and q, both [count, V] float64, from nearly uniform to nearly certain."""
    generator = torch.Generator().manual_seed(1000 * vocabulary + seed)
    sharp = torch.rand(count, 1, generator=generator, dtype=torch.float64) * 5
    logits = torch.randn(2, count, vocabulary, generator=generator, dtype=torch.float64)
    p, q = (sharp * logits).softmax(-1)
    return p, q


def kept_by_spectr(p, q, draws):
    """Return [count]: how often SpecTr accepts one of the drafts."""
    return torch.tensor(
        [factor_and_share(*one, draws)[1] for one in zip(p, q, strict=True)]
    ).double()


# ---- SpecTr ------------------------------------------------------------------------------------


@few
@given(seed=seeds, vocabulary=st.integers(2, 4), draws=st.integers(1, 3))
def test_independent_siblings(seed, vocabulary, draws):
    grow = growers.planned(lambda path: ("iid", draws), 1)
    assert error(World(seed, vocabulary), grow, verifier("spectr"), 2, consistent) < EXACT


def two_laws(oracle, world):
    """Return two independent siblings, each from a law of its own."""
    tree, q = DraftTree(), world.q(())
    for law in (q, q.flip(0)):
        tree.draw(ROOT, oracle.choose(law), "iid", law, "test")
    return tree


def test_siblings_from_two_laws():
    for seed in range(3):
        assert error(World(seed, 3), two_laws, verifier("spectr"), 1, consistent) < EXACT


@few
@given(seed=seeds, kinds=st.lists(st.sampled_from(["one_hot", *KINDS]), min_size=4, max_size=4))
def test_trees_of_every_kind(seed, kinds):
    grow = growers.planned(lambda path: (kinds[0 if not path else 1 + path[0]], 2), 2)
    assert error(World(seed, 3), grow, verifier("spectr"), 3, consistent) < EXACT


class WithTrial(SpecTr):
    def __init__(self, trial):
        super().__init__()
        self._trial = trial

    def trial_of(self, p, tree, draws):
        return self._trial(p, tree.laws, draws)


class TooEager(KSequentialTrial):
    """A fault: the first draft is judged as if it were the only one, with a factor of 1."""

    def __init__(self, p, laws, draws):
        super().__init__(p, laws, draws)
        self.factor = 1.0


class NothingRepaired(KSequentialTrial):
    def refuse(self, token, rule, drawn):
        self.refused += 1


class FirstResidual(KSequentialTrial):
    """A fault: the residual is that of one rejected draft, although the factor is larger and two drafts were
    rejected."""

    def refuse(self, token, rule, drawn):
        self.refused += 1
        if self.refused == self._draws:
            self.p = normalised((self.p - self.q(self._law)).clamp(min=0), otherwise=self.p)


@pytest.mark.parametrize("trial", [TooEager, NothingRepaired, FirstResidual])
def test_a_planted_bias_is_caught(trial):
    grow = growers.planned(lambda path: ("iid", 2), 1)
    assert worst(verifier("spectr"), grow) < EXACT
    assert worst(WithTrial(trial), grow) > 0.003


def test_drafts_that_are_counted_once_are_caught():
    assert worst(verifier("spectr"), growers.merges_repeats) > 0.003


def test_the_judgements_show_the_factor():
    p, q = torch.tensor([0.2, 0.8]), torch.tensor([0.9, 0.1])
    tree = DraftTree()
    for token in (0, 0, 1):
        tree.draw(ROOT, token, "iid", q)
    trial = KSequentialTrial(p, tree.laws, tree.draws[ROOT])
    rho = trial.factor
    one = min(0.2 / rho, 0.9) + min(0.8 / rho, 0.1)
    assert 1 < rho < 3
    assert abs(1 - (1 - one) ** 3 - rho * one) < 1e-5  # the fixed point that the paper names
    name, shown_p, shown_q = trial.weigh(0, tree.draws[ROOT][0])
    assert name == "k_sequential" and abs(shown_p - 0.2 / rho) < 1e-6 and abs(shown_q - 0.9) < 1e-6


@pytest.mark.parametrize("vocabulary", [5, 6, 7, 8])
def test_spectr_keeps_at_least_what_rejection_keeps_of_independent_drafts(vocabulary):
    p, q = pairs(200, vocabulary)
    for draws in (1, 2, 3, 5):
        ours = kept_by_spectr(p, q, draws)
        theirs = recursive(p, q, draws)
        assert (ours >= theirs - 1e-6).all()
        if draws > 1:
            assert ours.mean() > theirs.mean() + 0.001
        best = bound(p, q, "iid", draws)
        assert (ours >= (1 - np.exp(-1)) * best - 1e-6).all()  # the paper's guarantee


def recursive(p, q, draws):
    """Return [R]: how often rejection sampling accepts one of this many independent drafts."""
    refused = torch.ones(len(p), dtype=p.dtype)
    for _ in range(draws):
        refused = refused * (1 - torch.minimum(p, q).sum(-1))
        left = (p - q).clamp(min=0)
        mass = left.sum(-1, keepdim=True)
        p = torch.where(mass > 0, left / mass, p)
    return 1 - refused


# ---- The bound ---------------------------------------------------------------------------------


def draft_sets(q, kind, draws, fixed):
    """Return each set of drafts with its probability, by enumerating every way of drawing it."""
    found = {}
    for drawn in itertools.product(range(len(q)), repeat=draws):
        weight, left = 1.0, q.clone()
        for token in drawn:
            weight *= float(left[token] / left.sum()) if left.sum() > 0 else 0.0
            if kind == "without_replacement":
                left[token] = 0
        drafts = frozenset(drawn) | frozenset(fixed)
        found[drafts] = found.get(drafts, 0.0) + weight
    return found


def best_coupling(p, sets):
    """Return the optimum of the transport problem itself, by a linear program."""
    flows = [(s, token) for s in sets for token in s]
    rows = [[float(flow[0] == s) for flow in flows] for s in sets]
    rows += [[float(flow[1] == token) for flow in flows] for token in range(len(p))]
    limits = [*sets.values(), *p.tolist()]
    return -linprog([-1.0] * len(flows), A_ub=rows, b_ub=limits).fun


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draws, close", [(1, 1e-9), (2, 1e-9), (3, 1e-4)])
def test_the_bound_is_the_optimum_of_the_linear_program(kind, draws, close):
    for seed in range(4):
        (p,), (q,) = pairs(1, 5, seed)
        best = best_coupling(p, draft_sets(q, kind, draws, ()))
        assert abs(float(bound(p, q, kind, draws)) - best) < close


def test_the_bound_with_fixed_tokens():
    cases = itertools.product(range(4), KINDS, [(0,), (3, 1)], [1.0, 0.02])
    for seed, kind, fixed, less in cases:
        (p,), (q,) = pairs(1, 5, seed)
        p[list(fixed)] *= less  # below some share, no set is worse than that of the fixed tokens
        p /= p.sum()
        best = best_coupling(p, draft_sets(q, kind, 2, fixed))
        assert abs(float(bound(p, q, kind, 2, fixed)) - best) < 1e-9


def test_unlikely_tokens_together_change_little():
    (p,), (q,) = pairs(1, 3 * SEPARATE, 1)
    whole = [float(bound(p, q, "without_replacement", draws)) for draws in (2, 3, 4)]
    assert whole == sorted(whole) and float(bound(p, q, "iid", 3)) <= whole[1]
    with pytest.raises(ValueError):
        bound(p[:2], q[:2], "without_replacement", 3)


# ---- Expected acceptance, against the rule itself ----------------------------------------------


@pytest.mark.parametrize("key", ["rejection", "sampler_match", "spectr"])
@pytest.mark.parametrize("kind, draws", [("iid", 2), ("iid", 3), ("without_replacement", 2)])
def test_the_expected_acceptance_is_that_of_the_rule(key, kind, draws):
    rule, grow = verifier(key), growers.planned(lambda path: (kind, draws), 1)
    for seed in range(2):
        world = World(seed, 3, zeros=False)
        scheme = Scheme(kind, world.q(()), draws)
        found = rule.expected_acceptance(world.p(()), scheme)
        assert abs(found - accepted(world, grow, rule)) < 1e-5


def test_three_draws_without_replacement():
    rule = verifier("rejection")
    grow = growers.planned(lambda path: ("without_replacement", 3), 1)
    world = World(3, 4, zeros=False)
    found = rejection_keeps(world.p(()), Scheme("without_replacement", world.q(()), 3))
    assert abs(found - accepted(world, grow, rule)) < 1e-5


def favourites_and_one(oracle, world, drawn_first=True):
    """Return the drafts of the greedy construction: the two likeliest tokens, and one draw from the others."""
    tree, q = DraftTree(), world.q(())
    fixed = q.topk(2).indices.tolist()
    rest = q.clone()
    rest[fixed] = 0
    rest /= rest.sum()
    guesses = [(token, "one_hot", None) for token in fixed]
    guesses.insert(0 if drawn_first else 2, (oracle.choose(rest), "iid", rest))
    for token, kind, law in guesses:
        tree.draw(ROOT, token, kind, law)
    return tree


def test_the_greedy_construction_reaches_its_bound():
    rule, short = verifier("rejection"), []
    for seed in range(6):
        world = World(seed, 5, zeros=False)
        assert error(world, favourites_and_one, rule, 1) < EXACT
        schemes = []

        def look(tree, verdict, schemes=schemes):
            schemes.append(scheme_of(tree, tree.draws[ROOT]))

        output_law(world, favourites_and_one, rule, 1, look)
        most = transport_bound(world.p(()), schemes[0])
        kept = accepted(world, favourites_and_one, rule)
        assert abs(kept - most) < 1e-5
        assert abs(rule.expected_acceptance(world.p(()), schemes[0]) - most) < 1e-5
        other = accepted(world, lambda o, w: favourites_and_one(o, w, False), rule)
        short.append(most - other)
    assert min(short) > -1e-6 and max(short) > 0.01  # the other order falls short
