"""Models that make each pass once say what others say, and a fault in a session or its cache changes what they say."""

import pytest
import torch

from engine.model.cache import KVLayer
from engine.model.layers import Layers
from engine.model.session import Session
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


def test_the_same_is_said_and_the_module_is_run_once():
    plain, once, calls = tiny_target(4), passing_once(tiny_target(4)), []
    once.model.model.register_forward_hook(lambda *_: calls.append(1))
    expected, first = numbers(plain), numbers(once)
    made = len(calls)
    for found in (first, numbers(once)):
        assert all(map(torch.equal, expected, found))
    assert made == len(calls) > 2


def leaving_rows(keep):
    """A fault: accepted rows stay where they were read."""
    return lambda layer, start, columns, count: keep(layer, start, None, count)


def rewinding_too_little(rewind):
    """A fault: a token stays that a rewind is to remove."""
    return lambda session, length: rewind(session, length + 1)


@pytest.mark.parametrize(
    "cls, method, fault",
    [(KVLayer, "keep", leaving_rows), (Session, "rewind", rewinding_too_little)],
)
def test_a_fault_is_seen_although_all_right_passes_are_known(monkeypatch, cls, method, fault):
    model = passing_once(tiny_target(4))
    expected = numbers(model)
    monkeypatch.setattr(cls, method, fault(getattr(cls, method)))
    assert not all(map(torch.allclose, expected, numbers(model)))
