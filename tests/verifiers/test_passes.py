"""Models that make each pass once say what others say, and a fault in a session or its cache changes what they say."""

from functools import partial

import pytest
import torch

from engine.model.cache import KVLayer
from engine.model.layers import Layers
from engine.proof.tiny_parts import tiny_target
from tests.verifiers.passes import passing_once

FEATURES = (1, 2)
TREE, PARENTS = [2, 1, 0, 3], [-1, 0, 0, 1]


def numbers(model):
    """Return all that a session says of two steps: over a tree of which a branch stays, and behind a rewind."""
    session = model.session(32, FEATURES)
    said = [session.prefill([1, 2, 0, 1]), *session.feed(TREE, PARENTS)]
    session.commit([0, 2])
    below = session.through([1, 3], Layers(stop=1), [-1, 0])
    said += [below, session.through(below, Layers(first=1), head=True)]
    session.rewind(3)
    return [*said, *session.feed(TREE[1:], [-1, -1, 1])]


def counted(monkeypatch, model):
    calls, forward = [], model.model.model.forward
    monkeypatch.setattr(
        model.model.model,
        "forward",
        lambda *given, **named: calls.append(1) or forward(*given, **named),
    )
    return calls


def test_the_same_is_said_and_the_module_is_run_once(monkeypatch):
    plain, once = tiny_target(4), passing_once(tiny_target(4))
    expected, calls = numbers(plain), counted(monkeypatch, once)
    first = numbers(once)
    made = len(calls)
    for found in (first, numbers(once)):
        assert all(map(torch.equal, expected, found))
    assert made == len(calls) > 2


def moved_nowhere(keep, layer, start, columns, count):
    """A fault: accepted rows stay where they were read."""
    keep(layer, start, None, count)


def one_too_many(keep, layer, start, columns, count):
    """A fault: a refused row stays behind those that were kept."""
    keep(layer, start, columns, count + 1)


@pytest.mark.parametrize("fault", [moved_nowhere, one_too_many])
def test_a_fault_of_the_cache_is_seen_although_the_passes_are_known(monkeypatch, fault):
    model = passing_once(tiny_target(4))
    expected = numbers(model)
    keep = KVLayer.keep
    monkeypatch.setattr(KVLayer, "keep", lambda layer, *given: partial(fault, keep)(layer, *given))
    with pytest.raises((AssertionError, RuntimeError)):
        assert all(map(torch.allclose, expected, numbers(model)))
