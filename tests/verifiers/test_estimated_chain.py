"""A chain that ends by an estimate made before each draw keeps the law; by one that knows the draw, it does not."""

import numpy as np
import pytest
import torch

from engine.core.sampling import Sampling
from engine.methods.chain.drafter import ChainDrafter
from engine.methods.shared.acceptance_estimator import (
    DAMPING,
    INTERCEPT,
    RIDGE,
    SLOPE,
    STEPS,
    AcceptanceEstimator,
    log_odds,
)
from engine.rules import verifier
from tests.drafters.writing import built, steps_of
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import shared_models

PROMPT, DRAWN = (1, 2, 0, 1, 2), Sampling(1.0)
ESTIMATED = {"length": 3, "chance": "estimate", "stop_below": 0.15}


@pytest.fixture(scope="module")
def models():
    return shared_models(4, once=True)


def error(models, cls):
    return step_error(
        models, lambda: built(cls, models, **ESTIMATED), verifier("rejection"), DRAWN, PROMPT, 1
    )


class ByTheDraw(ChainDrafter):
    """A fault: it leaves the last token out if it is not the likeliest one."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        if tree.tokens[-1] != int(tree.laws[-1].argmax()):
            tree = tree.truncated(len(tree) - 1)
        return tree


def test_the_length_is_settled_before_the_draw(models):
    assert error(models, ChainDrafter) < 1e-5
    assert error(models, ByTheDraw) > 1e-3


def test_drafts_of_several_lengths_are_made(models):
    made = built("chain", models, **ESTIMATED)
    steps = steps_of(models, made, PROMPT, 60, Sampling(1.0, seed=4))
    assert {1, 2, 3} <= {len(step.tree) for step in steps}


def test_a_refit_is_one_step_of_newtons_method():
    """Of all coefficients together, by a plain solve of the ridged normal equations."""
    places, draws = 3, np.random.default_rng(5)
    made, seen = AcceptanceEstimator(places), []
    for _ in range(STEPS):
        odds, accepted = draws.normal(1, 2, places).tolist(), int(draws.integers(0, places + 1))
        made.see(odds, accepted)
        seen += [(k, odds[k], k < accepted) for k in range(min(accepted + 1, places))]
    place, odds, kept = map(np.array, zip(*seen, strict=True))
    rows = np.column_stack([odds, *(place == k for k in range(places))]).astype(float)
    chance = 1 / (1 + np.exp(-(SLOPE * odds + INTERCEPT)))
    matrix = (rows * (chance * (1 - chance))[:, None]).T @ rows + RIDGE * np.eye(places + 1)
    score = rows.T @ (kept - chance)
    slope = np.linalg.solve(matrix, score)[0] * len(seen) / (len(seen) + DAMPING)
    for k in range(places):
        count = (place == k).sum()
        step = (score[1 + k] - matrix[0, 1 + k] * slope) / matrix[1 + k, 1 + k]
        intercept = INTERCEPT + step * count / (count + DAMPING)
        expected = 1 / (1 + np.exp(-((SLOPE + slope) * 0.7 + intercept)))
        assert made.chance(0.7, k) == pytest.approx(expected)


def test_it_learns_what_is_kept():
    """Of tokens that the draft is sure of, and of those that it is not; each refit has few outcomes, so the mean counts."""
    made, draws, told = AcceptanceEstimator(1), np.random.default_rng(1), []
    for _ in range(3000):
        odds = float(draws.choice([-1.0, 3.0]))
        made.see([odds], int(draws.random() < (0.3 if odds < 0 else 0.95)))
        told.append([made.chance(-1.0, 0), made.chance(3.0, 0)])
    assert np.mean(told[500:], 0) == pytest.approx([0.3, 0.95], abs=0.05)


def test_the_log_odds_are_finite():
    assert log_odds(torch.tensor([1.0, 0.0])) == pytest.approx(40)
    assert log_odds(torch.tensor([0.25, 0.75])) == pytest.approx(np.log(3))
