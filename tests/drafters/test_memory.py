"""What drafters learn stays in a visitor's memory: bounded, resettable, and nobody else's."""

import json
from itertools import islice

import pytest

from engine.core.memory import Memory
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.model.language_model import LanguageModel
from engine.proof.tiny_parts import tiny_parts
from engine.run import RunRequest, open_run
from presets import family
from tests.drafters.writing import begun, drafted, steps_of
from tests.engine.tiny import tiny_model
from tests.verifiers.passes import passing_once

HERS, HIS = [30, 29, 28, 31, 30, 29], [1, 2, 3, 1, 2]


LEARNERS = [cls for cls in drafters().values() if cls.learns]


@pytest.fixture(scope="module")
def models():
    """Return models with four layers, so that a drafter that skips middle layers can choose some. They make each pass
    once, as most texts below are written several times."""
    return tiny_parts(
        passing_once(tiny_model(num_hidden_layers=4)),
        LEARNERS,
        lambda module: passing_once(LanguageModel(module, None, "part")),
    )


@pytest.mark.parametrize("key", [cls.key for cls in LEARNERS])
def test_nothing_of_one_memory_is_drafted_from_another(key, models):
    """Not one node differs, not even refused ones or their order, whatever another visitor wrote."""

    def write(prompt, memory, seed=0):
        return drafted(steps_of(models, key, prompt, 24, Sampling(1.0, seed=seed), memory=memory))

    alone = write(HIS, Memory())
    assert any(tokens for tokens, _, _ in alone)
    hers = Memory()
    for seed in range(2):
        write(HERS, hers, seed)
    assert write(HIS, Memory()) == alone
    assert write(HIS, None) == alone, "without a memory there is a fresh one"
    assert write(HIS, hers) != alone, "her own next text does profit"
    hers.reset()
    assert hers.nbytes == 0 and write(HIS, hers) == alone


@pytest.mark.parametrize("key", [cls.key for cls in LEARNERS])
def test_two_visitors_who_take_turns_do_not_meet(key, models):
    """Their runs advance step by step in the same process."""
    alone = drafted(steps_of(models, key, HIS, 16, memory=Memory()))
    mine, other = Memory(), Memory()
    runs = begun(models, key, HIS, 16, memory=mine), begun(models, key, HERS, 16, memory=other)
    his = []
    for step in runs[0]:
        his.append(step)
        next(runs[1], None)
    assert drafted(his) == alone


@pytest.mark.parametrize("key", [cls.key for cls in LEARNERS])
def test_a_memory_is_bounded(key, models):
    memory = Memory(limit=3000)
    for width in range(4):
        prompt = [width, 3, 5]
        steps_of(models, key, prompt, 20, memory=memory)
        assert memory.nbytes <= 3000


def test_runs_that_share_a_memory_profit_from_one_another():
    """Through a run request, as the page makes it."""

    def first_nodes(memory):
        request = RunRequest(
            "Once upon a time", family(), "token_recycling", {"budget": 8}, memory=memory
        )
        lines = [json.loads(line) for line in islice(open_run(request).steps(), 12)]
        return lines[0]["nodes"]["token"]

    mine = Memory()
    assert first_nodes(mine) == [] and len(first_nodes(mine)) == 8
    assert first_nodes(Memory()) == [] and first_nodes(None) == []
    mine.reset()
    assert first_nodes(mine) == []
