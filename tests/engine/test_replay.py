"""What a CUDA graph would make of a pass: its operations again, on the same memory, and no Python.

The passes of other tests are called anew each time, so that a number which Python worked out once
(a length, a branch, a mask that was kept) would be right there and frozen in a graph. Here the
operations are written down once and repeated.
"""

from collections.abc import Callable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine.gpu.slots import Slots
from engine.gpu.verdict import judged
from engine.opening import language_model
from engine.parts.loading import Models
from tests.engine.test_static import drafters, pair, steps_of, texts
from tests.engine.tiny import CONFIGS
from tests.engine.unrecorded import RULES, assert_same, built
from tests.engine.unrecorded import steps_of as steps_of_all


class Tape(TorchDispatchMode):
    """Operations in the order in which they ran, with the tensors they read and made."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple] = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        self._calls.append((function, arguments, named or {}, made))
        return made

    def replay(self) -> None:
        for function, arguments, named, made in self._calls:
            for old, new in zip(
                tree_leaves(made), tree_leaves(function(*arguments, **named)), strict=True
            ):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


def taped(function: Callable[[], object]) -> Callable[[], object]:
    function()
    with Tape() as tape:
        result = function()

    def replay() -> object:
        tape.replay()
        return result

    return replay


@pytest.fixture
def replayed(monkeypatch) -> list:
    """Passes are replayed; what is in the list has been. The reference of a verdict walks in
    Python, so that passes with one are called."""
    passes = []

    def prepared(slots, function, pool):
        if function.func is judged:
            return function
        passes.append(function.func.__name__)
        return taped(function)

    monkeypatch.setattr(Slots, "prepared", prepared)
    return passes


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_passes_can_be_replayed(architecture, replayed):
    """Over prefixes that grow beyond the windows, with trees of several shapes in one size."""
    plain, static = pair(architecture)
    drafts = pair("llama", seed=5)
    for one, other in zip(drafters(drafts[0]), drafters(drafts[1]), strict=True):
        expected, found = steps_of(plain, one), steps_of(static, other)
        assert texts(found) == texts(expected)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a.logits, b.logits, atol=2e-5, rtol=1e-4)
    assert set(replayed) == {"step"}


@pytest.mark.parametrize("key", ["chain", "dflash", "ddtree"])
@pytest.mark.parametrize(("rule", "sampling"), RULES)
def test_drafts_can_be_replayed(key, rule, sampling, static_models, static_blocks, replayed):
    """In runs that nobody records, on slots of which no pass has been made yet."""
    target, draft = (
        language_model(model.model, None, "tiny", lean=False, static=True)
        for model in (static_models.target, static_models.part("draft"))
    )
    models = Models(target, {**static_models.parts, "draft": draft})
    given = models, built(key, models), rule, sampling
    assert_same(steps_of_all(*given, False), steps_of_all(*given, True))
    assert set(replayed) >= ({"chain"} if key == "chain" else {"read", "draft"})


def test_a_tape_freezes_what_python_knows_and_nothing_else():
    known, read = [3], torch.tensor([3])
    replay = taped(lambda: (torch.zeros(1) + known[0], read[:1] * 2))
    known[0], read[0] = 5, 5
    frozen, fresh = replay()
    assert (frozen.item(), fresh.item()) == (3, 10)
