"""The walk through a block's candidates: q over the candidates is the law of what was drawn, and what the picture shows."""

import pytest
import torch

from engine.core.sampling import Sampling
from engine.methods.lattice.drafter import LatticeDrafter, Slots
from engine.rules import verifier
from tests.drafters.writing import built, steps_of
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import shared_models

PROMPT, DRAWN = (1, 2, 0, 1, 2), Sampling(1.0)


@pytest.fixture(scope="module")
def models():
    return shared_models(4, once=True)


def error(models, cls, sampling=DRAWN):
    def make():
        return built(cls, models, candidates=3)

    return step_error(models, make, verifier("rejection"), sampling, PROMPT, 1)


@pytest.mark.parametrize("sampling", [Sampling(1.0), Sampling(0.7, top_k=2)])
def test_a_walk_keeps_the_law(models, sampling):
    """Candidates that q does not hold may still be written by the target."""
    assert error(models, LatticeDrafter, sampling) < 1e-5


class AloneByItself(LatticeDrafter):
    """A fault: it declares that the tokens were drawn from the backbone's own laws."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        _, logits = self._reader.guesses(context[-1], len(tree))
        for law, row in zip(tree.laws, logits, strict=True):
            law.copy_(row.softmax(-1))
        return tree


def test_a_q_without_the_selector_is_biased(models):
    assert error(models, AloneByItself) > 1e-3


def test_the_picture_holds_the_candidates_and_the_walk(models):
    for step in steps_of(models, "lattice", PROMPT, 16, Sampling(1.0, seed=4), candidates=3):
        if not len(step.tree):
            continue  # the last token of the text leaves no room for a draft
        (shown,) = (one.to_dict(str) for one in step.tree.exhibits)
        assert shown["kind"] == "lattice" and len(shown["columns"]) == len(step.tree)
        for column, row, token in zip(
            shown["columns"], shown["path"], step.tree.tokens, strict=True
        ):
            assert column[row]["token"] == token and len(column) == 3
            assert sum(one["p"] for one in column) == pytest.approx(1, abs=1e-5)


def test_a_picked_candidate_far_down_is_in_the_picture():
    slots = Slots(torch.arange(16)[None], [torch.full((16,), 1 / 16)])
    (column,), (row,) = slots.shown([11]).columns, slots.shown([11]).path
    assert [one.token for one in column] == [0, 1, 2, 3, 4, 11] and row == 5
