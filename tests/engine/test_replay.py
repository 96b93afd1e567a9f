"""Passes give the right answer when only their operations run again, as in a CUDA graph.

Other tests call the passes anew each time. That would hide a number that Python computes once and a
graph freezes (see ``tests.engine.tape``).
"""

import pytest
import torch

from engine.fast.gpu import verdict
from engine.fast.gpu.buffer_sets import BufferSets
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import built
from tests.engine.tape import one_operation, run_taped, taped
from tests.engine.test_static import drafters, pair, steps_of, texts
from tests.engine.tiny import CONFIGS
from tests.engine.unrecorded import RULES, assert_same
from tests.engine.unrecorded import steps_of as steps_of_all
from tests.grids import some


@pytest.fixture
def replayed(monkeypatch) -> list:
    """Replay every pass. The list names the replayed passes. The reference of the verdict is written in Python, so a
    replay runs it as one operation."""
    passes = []

    def run(sets, one, owner):
        passes.append(one.function.func.__name__)
        return run_taped(sets, one, owner)

    monkeypatch.setattr(BufferSets, "run", run)
    monkeypatch.setattr(verdict, "verify_tree", one_operation(verdict.verify_tree))
    return passes


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_passes_can_be_replayed(architecture, replayed):
    """Over prefixes that grow beyond the windows, with trees of several shapes in one size: commits that move rows, windows,
    caps and sinks, token for token, step by step."""
    plain, static = pair(architecture)
    drafts = pair("llama", seed=5)
    for one, other in zip(drafters(drafts[0]), drafters(drafts[1]), strict=True):
        expected, found = steps_of(plain, one), steps_of(static, other)
        assert [step.tree.tokens for step in found] == [step.tree.tokens for step in expected]
        assert texts(found) == texts(expected)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a.logits, b.logits, atol=2e-5, rtol=1e-4)
    assert set(replayed) == {"step"}


DRAFTS = some(
    [(key, *rule) for key in ("chain", "dflash") for rule in RULES],
    lambda case: case[0] == "chain" or case[1:] in (RULES[0], RULES[2]),
)
"""The verdict's pass depends on the rule; a block's own passes only on whether it is sampled and cut."""


@pytest.mark.parametrize(("key", "rule", "sampling"), DRAFTS)
def test_drafts_can_be_replayed(key, rule, sampling, static_models, static_blocks, replayed):
    """In unrecorded runs, on buffer sets that have no passes yet."""
    target, draft = (
        language_model(model.model, None, "tiny", lean=False, static=True)
        for model in (static_models.target, static_models.part("draft"))
    )
    models = Models(target, {**static_models.parts, "draft": draft})
    given = models, built(key, models), rule, sampling
    assert_same(steps_of_all(*given, False), steps_of_all(*given, True))
    assert set(replayed) >= {"judged", *(["chain"] if key == "chain" else ["read", "draft"])}


def test_a_tape_freezes_what_python_knows_and_nothing_else():
    known, read = [3], torch.tensor([3])
    replay = taped(lambda: (torch.zeros(1) + known[0], read[:1] * 2))
    known[0], read[0] = 5, 5
    frozen, fresh = replay()
    assert (frozen.item(), fresh.item()) == (3, 10)
