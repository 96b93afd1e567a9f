"""Compiled passes through stretches of layers give the module's numbers and use the columns of full passes."""

import logging
from dataclasses import replace

import pytest
import torch

from engine.core.seen import Begun, Draft
from engine.core.tree import ROOT, DraftTree
from engine.fast.cpu import store
from engine.fast.cpu.budget import Budget
from engine.fast.cpu.compiled_model import CompiledModel
from engine.model.language_model import LanguageModel
from engine.model.layers import ATTENTION, EVERY, Layers
from engine.parts.opening import language_model
from tests.engine.tiny import tiny_hf_model
from tests.grids import some
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test

PROMPT = [5, 9, 2, 40, 7]  # as many rows as a graph of the drafts has
CLOSE = {"rtol": 1e-3, "atol": 1e-3}
CONVERT = ["llama", "gemma2", "gpt2"]


def opened(architecture):
    model = language_model(tiny_hf_model(architecture), None, "tiny")
    assert isinstance(model, CompiledModel)
    return model


def compiled(architecture, cuts, nodes=2):
    model = opened(architecture)
    model.prepare_stretches(cuts, nodes)
    return model


def no_module(module):
    def fails(*_, **__):
        raise AssertionError("the module was asked")

    for layer in module.model.layers if hasattr(module, "model") else module.transformer.h:
        layer.forward = fails


@pytest.mark.parametrize("architecture", CONVERT)
def test_a_draft_and_what_goes_on_from_it(architecture):
    """Two rows go through one layer; then a third goes through it while the two go on. Checks logits, features, and
    the columns from which a full pass continues. Nothing goes through the module."""
    model = compiled(architecture, [1])
    session = model.session(64, (1, 3))
    session.prefill(PROMPT)
    tree = DraftTree()
    first = tree.draw(ROOT, 3)
    tree.draw(first, 8)
    draft = Draft(2, tree, len(PROMPT))
    plain = session.look(draft)
    session.commit([0, 1])
    after, _ = session.feed([1], [-1])
    session.rewind(len(PROMPT))
    no_module(model.model)
    states = [
        session.through([token], Layers(stop=1), [row - 1]) for row, token in enumerate([2, 3])
    ]
    session._goes_on = lambda layer: True
    seen = session.look(replace(draft, begun=Begun(1, torch.cat(states))))
    torch.testing.assert_close(seen.logits, plain.logits, **CLOSE)
    torch.testing.assert_close(seen.features, plain.features, **CLOSE)
    session.commit([0, 1])
    torch.testing.assert_close(session.feed([1], [-1])[0], after, **CLOSE)


@pytest.mark.parametrize("architecture", some(CONVERT, "gemma2".__eq__))
def test_the_rows_of_an_exit_are_read_again(architecture):
    """The states on the way to the exit are those of a whole pass, and so are the logits after it. Nothing goes through
    the module. The stretches are made as in the test above; those of gemma2 have windows, and its head caps."""
    model = language_model(tiny_hf_model(architecture), None, "tiny")
    model.prepare_exits([1, 2])
    tree = DraftTree()
    tree.draw(tree.draw(ROOT, 3), 8)
    draft = Draft(2, tree, len(PROMPT))
    plain, session = (model.session(64, (1, 2, 3)) for _ in range(2))
    for one in (plain, session):
        one.prefill(PROMPT)
    expected = plain.look(draft)
    assert [one.stop for one in model.stretches.way(Layers(stop=2))] == [1, 2]
    no_module(model.model)
    states = session.through([2, 3], Layers(stop=2), [-1, 0])
    below = expected.features.view(3, 3, -1)[:2, :2].flatten(1)
    torch.testing.assert_close(torch.cat([session._taps[1][0], states], -1), below, **CLOSE)
    seen = session.look(replace(draft, begun=Begun(2, states)))
    torch.testing.assert_close(seen.logits, expected.logits, **CLOSE)
    torch.testing.assert_close(seen.features, expected.features, **CLOSE)


def test_a_pass_takes_the_stretches_that_there_are():
    model = compiled("llama", [1, 2], 0)
    ways = model.stretches.way
    through = {(0, 2): Layers(stop=2), (1, 3): Layers(first=1), (0, 3): Layers()}
    for (first, stop), layers in through.items():
        assert [(one.first, one.stop) for one in ways(layers)] == [
            (at, at + 1) for at in range(first, stop)
        ]
    graphs = ways(Layers(stop=1))[0].graphs
    every = graphs.general
    assert graphs.of(1) is not every and graphs.of(2) is every, (
        "a draft's rows have a graph of their own"
    )
    assert ways(Layers(skipped=frozenset({(1, ATTENTION)}))) is None
    model.prepare_stretches([2], 0)
    assert [(one.first, one.stop) for one in ways(Layers())] == [(0, 2), (2, 3)]
    other = opened("llama")
    other.prepare_exits([2])
    assert other.stretches.way(Layers(stop=2)) and other.stretches.way(Layers(stop=1)) is None


def test_states_of_a_whole_pass_are_normed():
    model = compiled("qwen3", [1])
    session = model.session(64, (3,))
    session.prefill(PROMPT)
    found = session.through([3, 8], EVERY, [-1, 0])
    session.drop()
    _, features = session.feed([3, 8], [-1, 0])
    torch.testing.assert_close(found, features, **CLOSE)


def test_one_that_gives_other_numbers_is_not_used(caplog, monkeypatch):
    monkeypatch.setattr("engine.fast.cpu.stretches.close", lambda *_: False)
    log = logging.getLogger("engine.fast.cpu.store")
    monkeypatch.setattr(log, "disabled", False)  # another test's library may have silenced it
    with caplog.at_level(logging.WARNING, log.name):
        model = compiled("llama", [1])
    assert "There is no graph for layers 0 to 1" in caplog.text
    assert model.stretches.way(Layers(stop=1)) is None
    session = model.session(64)
    session.prefill(PROMPT)
    assert session.through([3], Layers(stop=1), [-1]).shape == (1, 32)


@pytest.mark.parametrize("what, room", [(["layers"], 1), ([" end", "head"], 10**9)])
def test_a_graph_that_cannot_be_made_when_a_pass_wants_it_is_done_without(what, room, monkeypatch):
    """With little room, no stretch was made before the pass. Each of the two stretches is tried once, and so are the part
    after the last layer and the head."""
    budget = Budget(room)
    monkeypatch.setattr("engine.fast.cpu.budget.graph_memory", lambda: budget)
    model, asked = language_model(tiny_hf_model("llama"), None, "tiny"), []

    def refuses(graph, given, described, *how, **options):
        if any(one in described.partition("{")[0] for one in what):
            asked.append(described)
            raise RuntimeError("no such operation")
        return store.compiled(graph, given, described, *how, **options)

    for place in ("stretches", "compiled_model"):
        monkeypatch.setattr(f"engine.fast.cpu.{place}.compiled", refuses)
    model.prepare_stretches([1], 2)
    session, plain = model.session(64), LanguageModel(model.model, None, "plain").session(64)
    for one in (session, plain):
        one.prefill(PROMPT)
    expected = plain.feed([2, 3], [-1, 0])[0]
    plain.drop()
    session._goes_on = lambda layer: True
    for _ in range(2):
        states, below = (one.through([2, 3], Layers(stop=1), [-1, 0]) for one in (session, plain))
        torch.testing.assert_close(states, below, **CLOSE)
        tree = DraftTree()
        tree.draw(ROOT, 3)
        seen = session.look(Draft(2, tree, len(PROMPT), begun=Begun(1, states)))
        torch.testing.assert_close(seen.logits, expected, **CLOSE)
        torch.testing.assert_close(model.head(states), model.model.lm_head(states), **CLOSE)
        for one in (session, plain):
            one.drop()
    assert len(asked) == len({*asked}) == 2
