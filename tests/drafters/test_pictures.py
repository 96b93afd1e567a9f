"""Speculative Jacobi decoding and its lossy rule on the shipped image target."""

import pytest

from engine.core.sampling import Sampling
from engine.methods import drafter
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


def keeps_its_tokens(cls):
    """Return the class with a fault: a guess after a rejection stays, and is judged by a later law."""

    class Kept(cls):
        def propose(self, context, max_depth):
            tree, before = super().propose(context, max_depth), getattr(self, "_before", {})
            for node, token in enumerate(tree.tokens):
                tree.tokens[node] = before.get(len(context) + node, token)
            self._before = {len(context) + node: token for node, token in enumerate(tree.tokens)}
            return tree

    return Kept


def test_what_a_pass_writes_has_the_targets_law(models):
    """Every branch of a step that follows others, inside a stroke, where many patches are possible."""
    remembered, sampling, rule = remembering(models), Sampling(2.0, top_k=3), verifier("rejection")
    prompt = (FIRST_DIGIT + 3, *[0] * 11, 2, 15, 5, 1)

    def error(cls):
        made = lambda: built(cls, remembered, window=2)
        return step_error(remembered, made, rule, sampling, prompt, steps_before=2)

    cls = drafter("sjd")
    assert error(cls) < 1e-5
    assert error(keeps_its_tokens(cls)) > 1e-3
