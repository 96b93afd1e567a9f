"""Speculative Jacobi decoding and its lossy rule on the shipped image target."""

import pytest

from engine.core.sampling import Sampling
from engine.parts.loading import load_models
from engine.proof.memo import remembering
from engine.rules import verifier
from engine.training.pictures.digits import FIRST_DIGIT
from presets import family
from tests.drafters.writing import built
from tests.verifiers.step_errors import step_error

WINDOW = 16


@pytest.fixture(scope="module")
def models():
    return load_models(family("image"), {})


def test_what_a_pass_writes_has_the_targets_law(models):
    """Every branch of a step that follows others, inside a stroke, where many patches are possible."""
    remembered, sampling, rule = remembering(models), Sampling(2.0, top_k=3), verifier("rejection")
    prompt = (FIRST_DIGIT + 3, *[0] * 11, 2, 15, 5, 1)

    made = lambda: built("sjd", remembered, window=2)
    assert step_error(remembered, made, rule, sampling, prompt, steps_before=2) < 1e-5
