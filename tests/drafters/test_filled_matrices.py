"""Drafters that read their drafts off a matrix which earlier texts have filled."""

import copy
from dataclasses import replace

import pytest
import torch

from engine.core.memory import Memory
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.rules import verifier
from tests.drafters.writing import built, steps_of, text_of
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import remembered_models, shared_models

KEYS = [key for key in ("aded", "token_recycling") if key in drafters()]
EXACT = 1e-5
PROMPT = (1, 2, 0, 1, 2)


def error(cls, models, rule, steps_before):
    make = lambda: built(cls, models)
    return step_error(models, make, verifier(rule), Sampling(1.0), PROMPT, steps_before)


@pytest.mark.parametrize("rule", ["rejection", "sampler_match"])
@pytest.mark.parametrize("key", KEYS)
def test_the_law_after_other_texts_have_filled_the_matrix(key, rule):
    models, warm = remembered_models(4), Memory()
    for seed in range(3):
        steps_of(models, key, (0, seed), 12, Sampling(1.0, seed=seed), memory=warm)

    class Warm(drafters()[key]):
        def begin(self, start):
            super().begin(replace(start, memory=copy.deepcopy(warm)))

    assert error(Warm, models, rule, 1) < EXACT


@pytest.mark.parametrize("key", KEYS)
def test_a_planted_bias_is_caught(key):
    class CallsItselfDrawn(drafters()[key]):
        """A fault: chosen tokens are declared as drawn from the matrix."""

        def propose(self, context, max_depth):
            tree = super().propose(context, max_depth)
            tree.laws.append(torch.full((self._vocabulary,), 1 / self._vocabulary))
            for parent, draws in tree.draws.items():
                tree.draws[parent] = [replace(d, kind="without_replacement", law=0) for d in draws]
            return tree

    assert error(CallsItselfDrawn, remembered_models(4), "rejection", 2) > 100 * EXACT


@pytest.mark.parametrize("key", KEYS)
def test_a_memory_too_small_for_the_matrix_serves_one_run_and_keeps_nothing(key):
    models, memory = shared_models(16), Memory(limit=100)
    first = steps_of(models, key, [3, 5, 7], memory=memory)
    assert any(len(step.tree) for step in first) and memory.nbytes == 0
    assert text_of(first) == text_of(steps_of(models, "none", [3, 5, 7]))
