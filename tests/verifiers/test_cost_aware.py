"""Trees that stop where a node costs more than it brings: the size that pays most, and the target's law."""

import dataclasses

import pytest

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.methods import drafter
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.methods.shared.cost_aware import StepCosts
from engine.rules import verifier
from engine.sizes.draft_size import settle_size, with_costs
from tests.drafters.writing import built, steps_of, text_of
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import remembered_models, shared_models

EXACT = 1e-5
PROMPT = (1, 2, 0, 1, 2)
DEAR, CHEAP = {0: 1.0, 1: 1.05, 16: 25.0}, {0: 1.0, 16: 1.001}


def made(models, cls, costs, **options):
    return built(cls, dataclasses.replace(models, costs=costs), cost_aware=True, **options)


# ---- The size that pays -------------------------------------------------------------------------


def test_costs_lie_on_lines_between_measured_sizes_and_never_fall():
    costs = StepCosts({0: 2.0, 4: 4.0, 8: 3.0, 16: 12.0})
    first = costs.at(0)
    assert [costs.at(n) - first for n in (0, 2, 4, 8, 12, 16, 20)] == pytest.approx(
        [0.0, 1.0, 2.0, 2.0, 6.0, 10.0, 14.0]
    )


@pytest.mark.parametrize(
    ("chances", "best"),
    [
        # a pass costs 1 and drafting 0.4; a node costs 0.1: (1 + 0.9) / 1.5 = 1.27, (1 + 1.7) / 1.6 = 1.69, and the
        # third pays if it is kept with more than 1.69 * 0.1
        ([0.9, 0.8, 0.18], 3),
        ([0.9, 0.8, 0.16], 2),
        ([0.9, 0.01], 1),
        ([0.01], 1),
        ([], 0),
    ],
)
def test_the_last_node_is_the_last_that_pays(chances, best):
    costs = StepCosts({0: 1.0, 10: 2.0})
    assert costs.best(chances) == best
    if len(chances) == 3:
        assert costs.pays(2.7, 2, chances[2]) == (best == 3)


def test_drafting_that_takes_long_makes_larger_trees_pay():
    class Kept:
        milliseconds = {"draft": 8.0}

    costs, chances = StepCosts({0: 1.0, 10: 2.0}), [0.9, 0.8, 0.1, 0.1]
    before = costs.best(chances)
    for _ in range(30):
        costs.see(Kept)
    assert costs.best(chances) > before


# ---- Exact, whatever is cut ---------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [Sampling(1.0), Sampling(0.7, top_k=3)], ids=["t1", "top_k"])
def test_a_step_writes_the_target_law(sampling):
    models, rule = remembered_models(4), verifier("rejection")
    make = lambda: made(models, DySpecDrafter, {0: 1.0, 16: 4.0}, budget=4, depth=3)
    assert step_error(models, make, rule, sampling, PROMPT) < EXACT


class CutsDrawn(DySpecDrafter):
    """A fault: the tree is cut to the size that pays after its tokens were drawn."""

    def propose(self, context, max_depth):
        costs, self.costs = self.costs, None
        tree = super().propose(context, max_depth)
        self.costs = costs
        return tree.truncated(next((n for n, q in enumerate(tree.q) if q < 0.3), len(tree)))


def test_a_planted_bias_is_caught():
    models, rule = remembered_models(4), verifier("rejection")
    make = lambda: made(models, CutsDrawn, CHEAP, budget=3)
    assert step_error(models, make, rule, Sampling(1.0), PROMPT) > 100 * EXACT


@pytest.mark.parametrize("key", ["dyspec", "eagle", "mtp"])
def test_trees_are_smaller_where_nodes_are_dear_and_the_text_is_the_same(key):
    models, cls = shared_models(16), drafter(key)
    size = {cls.size_option: 8}
    plain = text_of(steps_of(models, "none", PROMPT))
    nodes = {}
    for name, costs in (("dear", DEAR), ("cheap", CHEAP)):
        steps = steps_of(models, made(models, cls, costs, **size), PROMPT)
        assert text_of(steps) == plain
        nodes[name] = sum(len(step.tree) for step in steps) / len(steps)
        shown = [one.make() if hasattr(one, "make") else one for one in steps[0].tree.exhibits]
        (curve,) = [one for one in shown if one.title.startswith("Expected tokens")]
        rates = curve.series[0].y
        assert rates[len(steps[0].tree)] == pytest.approx(max(rates[1:]), rel=0.05)
    assert nodes["dear"] < nodes["cheap"] / 2


# ---- Measured -----------------------------------------------------------------------------------


def test_costs_are_measured_where_they_are_asked_for(monkeypatch):
    models, cls = shared_models(16), drafter("dyspec")
    options = resolve("dyspec", cls.options, {"cost_aware": True})
    assert settle_size(cls, options, models, Sampling(1.0))["budget"] == 16
    monkeypatch.setenv("DRAFTSCOPE_MEASURE", "0")
    assert with_costs(cls, options, models).costs == {}
    monkeypatch.setenv("DRAFTSCOPE_MEASURE", "1")
    costs = with_costs(cls, options, models).costs
    assert with_costs(cls, options, models).costs == costs, "measured once"
    assert sorted(costs) == [0, 3, 4, 8, 16] and min(costs.values()) > 0
    assert with_costs(cls, options | {"cost_aware": False}, models).costs == {}
