"""Drafters that draw several siblings: the law of their trees, and biases that must be caught."""

import numpy as np
import pytest
import torch

from engine.core.chance import DraftChance
from engine.core.drafter import Start
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, Draw
from engine.errors import UserError
from engine.methods.mdsd.drafter import MDSDGreedy
from engine.methods.multi_chain.drafter import MultiChainDrafter
from engine.methods.rsd_c.drafter import RSDConstant
from engine.methods.rsd_s.drafter import RSDBeam
from engine.methods.shared.levels import favourites
from engine.proof.enumeration import OracleDraftChance, branches
from engine.proof.step_law import Reader
from engine.rules import verifier
from engine.trace.meters import measured
from tests.drafters.writing import begun
from tests.engine.family import trace_of
from tests.statistics import p_value
from tests.verifiers.step_errors import step_error
from tests.verifiers.test_pairs import EXACT, PROMPT, maker, memo
from tests.verifiers.worlds import path_of

T1 = Sampling(1.0)
CUT = Sampling(0.7, top_k=3, top_p=0.97)


def proposed(cls, chance, sampling=T1, vocabulary=4, **options):
    models = memo(vocabulary)
    drafter = maker(cls, models, **options)()
    drafter.begin(Start(PROMPT, sampling, chance))
    return drafter.propose(PROMPT, 5)


def drawn_order(tree):
    """The paths of a tree's nodes, level by level, each level in the order drawn."""
    return tuple(path_of(tree, node) for node in range(len(tree)))


def tree_law(cls, **options):
    """Each tree with its probability."""
    law = {}
    for order, oracle in branches(
        lambda oracle: drawn_order(proposed(cls, OracleDraftChance(oracle), **options))
    ):
        law[order] = law.get(order, 0.0) + oracle.weight
    return law


# ---- Stochastic beam search ----------------------------------------------------------------------

SAMPLES = 2000
FALSE_ALARM = 1e-3


class Gumbels:
    """Stochastic beam search as Kool et al. write it: perturbed values, top down."""

    def __init__(self, width, length, vocabulary=4):
        self._reader = Reader(
            type(memo(vocabulary))(memo(vocabulary).parts["draft"], {}), Sampling(1.0)
        )
        self._random = np.random.default_rng(7)
        self._width, self._length = width, length

    def sample(self, conditioned=True):
        """Return the paths of one sampled beam. conditioned: whether the values of children have their parent's value
        as their maximum."""
        beam, order = [((), 0.0, 0.0)], []
        for _ in range(self._length):
            found = []
            for path, log_q, value in beam:
                row = np.array(self._reader._next((*PROMPT, *path)))
                logs = log_q + np.log(np.maximum(row, 1e-300))
                values = logs + self._random.gumbel(size=len(row))
                if conditioned:
                    inside = np.exp(-value) - np.exp(-values.max()) + np.exp(-values)
                    values = -np.log(inside)
                found += [((*path, token), logs[token], values[token]) for token in range(len(row))]
            beam = sorted(found, key=lambda entry: -entry[2])[: self._width]
            order += [path for path, _, _ in beam]
        return tuple(order)


@pytest.mark.parametrize("width, length, vocabulary", [(2, 2, 4), (2, 3, 3)])
def test_the_trees_are_those_of_stochastic_beam_search(width, length, vocabulary):
    """The discrete race gives each tree, in order, as often as perturbed values do."""
    law = tree_law(RSDBeam, vocabulary=vocabulary, width=width, length=length)
    assert abs(sum(law.values()) - 1) < 1e-9
    search = Gumbels(width, length, vocabulary)
    assert p_value((search.sample() for _ in range(SAMPLES)), law) > FALSE_ALARM / 2
    wrong = (search.sample(conditioned=False) for _ in range(SAMPLES))
    assert p_value(wrong, law) < FALSE_ALARM / 2


def test_gumbel_top_k_is_drawing_one_after_another():
    law = tree_law(RSDConstant, branching="3")
    reader = Gumbels(3, 1)
    assert p_value((reader.sample() for _ in range(SAMPLES)), law) > FALSE_ALARM


class BestFirst(RSDBeam):
    """A fault: the sequences are right, but siblings are handed over in order of q, not of perturbed value."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        for siblings in tree.draws.values():
            siblings.sort(key=lambda drawn: -tree.q[drawn.node])
        return tree


class CopiesOfTheLaw(RSDBeam):
    """A fault: every sibling brings its own copy of q, in which rejected tokens remain."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        for parent, siblings in tree.draws.items():
            for place, drawn in enumerate(siblings):
                tree.laws.append(tree.laws[drawn.law].clone())
                tree.draws[parent][place] = Draw(drawn.node, drawn.kind, len(tree.laws) - 1)
        return tree


class Likeliest(RSDBeam):
    """A fault: sequences are kept by their q, although their tokens were drawn."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        for parent, siblings in tree.draws.items():
            tree.draws[parent] = [max(siblings, key=lambda drawn: tree.q[drawn.node])]
        return tree


class LawOfAll(MDSDGreedy):
    """A fault: the drawn token is declared as drawn from all of q."""

    def place(self, tree, parent, q, tokens):
        self._rest[0] = q.double()
        super().place(tree, parent, q, tokens)


class CountedOnce(MultiChainDrafter):
    """A fault: equal draws are handed over once only."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        for parent, siblings in tree.draws.items():
            tree.draws[parent] = list(dict.fromkeys(siblings))
        return tree


@pytest.mark.parametrize(
    "wrong, key",
    [
        (BestFirst, "rejection"),
        (CopiesOfTheLaw, "rejection"),
        (Likeliest, "rejection"),
        (LawOfAll, "rejection"),
        (CountedOnce, "rejection"),
        (CountedOnce, "spectr"),
    ],
)
def test_a_drafter_that_breaks_the_law_is_caught(wrong, key):
    models = memo(4)
    assert step_error(models, maker(wrong, models), verifier(key), CUT, PROMPT) > 100 * EXACT


# ---- Shapes -----------------------------------------------------------------------------------------


def test_branching_factors_are_the_shape():
    for cls in (RSDConstant, MDSDGreedy):
        for sampling in (Sampling(), T1):
            tree = proposed(cls, DraftChance(3), sampling, 16, branching="3-2-1")
            assert [tree.depths.count(depth) for depth in (1, 2, 3)] == [3, 6, 6]
            assert all(len(tree.laws) == len({id(law) for law in tree.laws}) for _ in (0,))
    with pytest.raises(UserError, match="branching"):
        resolve("rsd_c", RSDConstant.options, {"branching": "9-9"})


def test_a_beam_keeps_its_width_at_every_level():
    for sampling in (Sampling(), T1):
        tree = proposed(RSDBeam, DraftChance(3), sampling, 16, width=3, length=4)
        assert [tree.depths.count(depth) for depth in (1, 2, 3, 4)] == [3] * 4


def test_the_greedy_beam_is_beam_search():
    """The most probable sequences among those that the level above allows."""
    tree = proposed(RSDBeam, DraftChance(0), Sampling(), 4, width=2, length=2)
    search, beam = Gumbels(2, 2), [((), 1.0)]
    for depth in (1, 2):
        found = [
            ((*path, token), share * q)
            for path, share in beam
            for token, q in enumerate(search._reader._next((*PROMPT, *path)))
        ]
        beam = sorted(found, key=lambda entry: -entry[1])[:2]
        level = [path for path in drawn_order(tree) if len(path) == depth]
        assert level == [path for path, _ in beam]


def test_chains_count_every_draw():
    for seed in range(20):
        tree = proposed(MultiChainDrafter, DraftChance(seed), chains=5, length=3)
        assert len(tree.draws[ROOT]) == 5
        for node in range(len(tree)):
            through = sum(drawn.node == node for drawn in tree.draws[tree.parents[node]])
            assert len(tree.draws.get(node, ())) == (through if tree.depths[node] < 3 else 0)
        for siblings in tree.draws.values():
            assert len({drawn.law for drawn in siblings}) == 1


def test_greedy_chains_begin_differently():
    tree = proposed(MultiChainDrafter, DraftChance(0), Sampling(), chains=6, length=2)
    assert len(tree.children(ROOT)) == 4  # the vocabulary holds no more
    assert all(len(tree.children(child)) == 1 for child in tree.children(ROOT))


def test_favourites_leave_out_what_is_impossible():
    assert favourites(torch.tensor([[0.0, 0.7, 0.3]]), 3) == [[1, 2]]
    tree = proposed(MDSDGreedy, DraftChance(0), Sampling(1.0, top_k=2), branching="4")
    assert [drawn.kind for drawn in tree.draws[ROOT]] == ["one_hot", "one_hot"]


# ---- The meter -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls, key, options",
    [
        (RSDConstant, "rejection", {"branching": "3-2-1"}),
        (RSDBeam, "rejection", {"width": 4}),
        (MultiChainDrafter, "spectr", {"chains": 3}),
        (MultiChainDrafter, "sampler_match", {"chains": 3}),
        (MDSDGreedy, "rejection", {"branching": "3-2-1"}),
    ],
)
def test_the_meter_stands_beside_every_rule(cls, key, options):
    models, rule, read = memo(16), verifier(key), []
    for step in begun(models, cls, list(PROMPT), 6, T1, rule, **options):
        assert not measured(step, Sampling(), rule)  # nothing is sampled in greedy decoding
        found = measured(step, T1, rule)
        if found:
            gauge, table = found
            assert gauge.meter and table.meter
            assert 0 < gauge.value <= gauge.mark <= 1
            read.append(step.index)
    assert read[0] == 0


def test_a_trace_of_spectr_is_valid():
    """With the division factor applied, its p and q are still probabilities."""
    trace = trace_of("Once upon a time", drafter="multi_chain", temperature=1.0, max_new_tokens=12)
    judged = [entry for step in trace.steps for entry in step["judgements"]]
    assert {"k_sequential"} <= {entry["rule"] for entry in judged}
