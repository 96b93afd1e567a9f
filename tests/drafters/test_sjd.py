"""Speculative Jacobi: drawing anew from the laws of the last pass is exact, keeping tokens is not."""

from itertools import pairwise

import pytest
import torch

from engine.core.sampling import Sampling, display_distribution
from engine.methods.sjd.drafter import SpeculativeJacobiDrafter
from engine.rules import verifier
from tests.drafters.writing import built, steps_of
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import remembered_models, shared_models

WINDOW = 5
PROMPT = (1, 2, 0, 1, 2)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, top_p=0.9, seed=3)])
def test_places_are_drawn_from_the_laws_of_the_last_pass(sampling):
    steps = steps_of(shared_models(16), "sjd", [3, 5, 7], 30, sampling, window=WINDOW)
    for before, step in pairwise(steps):
        laws = display_distribution(before.logits, sampling)[len(before.verdict.accepted) + 1 :]
        laws = laws[: len(step.tree)]
        for node, law in enumerate(laws):
            shown = step.tree.laws[step.tree.draws[node - 1][0].law]
            assert torch.allclose(shown, law, atol=1e-6)
            assert step.tree.tokens[node] == int(law.argmax()) or not sampling.greedy
            assert law[step.tree.tokens[node]] > 0
        fresh = step.tree.sources.count("first guess")
        assert fresh == len(step.tree) - len(laws)


def test_the_table_tells_how_far_the_laws_have_moved():
    steps = steps_of(shared_models(16), "sjd", [3, 5, 7], 30, Sampling(1.0, seed=1), window=WINDOW)
    for before, step in pairwise(steps):
        if len(step.tree) < WINDOW or len(before.tree) < WINDOW:
            continue
        (table,) = step.tree.exhibits
        kept = len(before.verdict.accepted)
        after = before.logits.softmax(-1)
        for place, row in enumerate(table.rows[: WINDOW - kept - 1]):
            node = place + kept + 1
            law = before.tree.laws[before.tree.draws[node - 1][0].law]
            assert row[-1] == pytest.approx(0.5 * float((after[node] - law).abs().sum()), abs=1e-4)


class KeepsItsTokens(SpeculativeJacobiDrafter):
    """A fault: a token stays while its place gets a new law, which is then declared as the law of the token."""

    def _draw(self, tree, parent, place):
        if not place.guesses or not place.law[place.guesses[-1]]:
            return super()._draw(tree, parent, place)
        return tree.draw(parent, place.guesses[-1], "iid", place.law, place.source)


def test_a_planted_bias_is_caught():
    models, sampling = remembered_models(4), Sampling(1.0)

    def error(cls):
        """Return the largest error of the class's steps over four seeds of dice, because the dice decide whether a
        window outlives a step."""
        rule = verifier("rejection")
        return max(
            step_error(
                models, lambda: built(cls, models, window=3), rule, sampling, PROMPT, 1, dice
            )
            for dice in range(4)
        )

    assert error(SpeculativeJacobiDrafter) < 1e-5
    assert error(KeepsItsTokens) > 1e-3
