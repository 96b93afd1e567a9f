"""Passes through some layers, rows that are vectors, and probe rows."""

from dataclasses import replace
from functools import cache, partial
from itertools import product

import pytest
import torch

from engine.core.seen import Begun, Draft, Join, Probes
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError
from engine.model.going_on import goes_on
from engine.model.layers import ATTENTION, EVERY, MLP, Layers
from engine.parts.opening import language_model
from tests.engine.tiny import CONFIGS, tiny_hf_model
from tests.grids import some

PROMPT = [5, 9, 2, 40, 7, 7, 12]
TREE = [-1, 0, 0, 1]  # parents of the rows
ROWS = [3, 8, 11, 30]
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
FEATURES = (1, 2, 3)  # the same ones everywhere: another set takes another compiled graph
ALTERNATING = {"qwen2", "gemma2", "gemma3", "gpt_oss"}
"""Architectures of which not all layers have the same window, so that it matters where rows go on."""


@cache
def opened(architecture, lean):
    return language_model(tiny_hf_model(architecture), None, "tiny", lean=lean)


def sessions(architecture, features=()):
    """Yield (model, session) for the same model, read through its module and, where possible, through compiled
    passes."""
    for lean in (False, True):
        model = opened(architecture, lean)
        session = model.session(64, features)
        session.prefill(PROMPT)
        yield model, session


@pytest.mark.parametrize("architecture", CONFIGS)
def test_all_layers_are_an_ordinary_pass(architecture):
    for model, session in sessions(architecture):
        expected, _ = session.feed(ROWS, TREE)
        session.drop()
        found = model.head(session.through(ROWS, EVERY, TREE))
        torch.testing.assert_close(soft_capped(model, found), expected, **CLOSE)


SPLITS = some(product(CONFIGS, [1, 2]), lambda case: case[0] in ALTERNATING or case[1] == 1)


@pytest.mark.parametrize("architecture, split", SPLITS)
def test_rows_go_on_from_a_layer(architecture, split):
    """Two rows and then two more go up to a layer; then all four go through the other layers."""
    for model, session in sessions(architecture):
        expected, _ = session.feed(ROWS, TREE)
        session.commit([0, 2])
        after, _ = session.feed([1, 1], [-1, 0])
        session = model.session(64)
        session.prefill(PROMPT)
        below = Layers(stop=split)
        lower = torch.cat(
            [session.through(ROWS[:2], below, TREE[:2]), session.through(ROWS[2:], below, TREE[2:])]
        )
        found = session.through(lower, Layers(first=split))
        torch.testing.assert_close(soft_capped(model, model.head(found)), expected, **CLOSE)
        session.commit([0, 2])  # the rows can also be kept
        again, _ = session.feed([1, 1], [-1, 0])
        torch.testing.assert_close(again, after, **CLOSE)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_skipped_layers_add_nothing(architecture):
    whole = frozenset((layer, part) for layer in range(3) for part in (ATTENTION, MLP))
    for model, session in sessions(architecture):
        found = session.through(ROWS, Layers(skipped=whole), TREE)
        embedded = model.embed(torch.tensor(ROWS))
        if architecture in ("llama", "qwen3", "mistral", "qwen2"):
            torch.testing.assert_close(found, model.norm(embedded), **CLOSE)
        session.drop()
        one = frozenset({(1, ATTENTION), (2, MLP)})
        partly = session.through(ROWS, Layers(skipped=one), TREE)
        session.drop()
        assert not torch.allclose(partly, session.through(ROWS, EVERY, TREE))
        session.drop()
        expected, _ = session.feed(ROWS, TREE)  # a dropped draft leaves no mark
        session.drop()
        again, _ = session.feed(ROWS, TREE)
        torch.testing.assert_close(again, expected)


@pytest.mark.parametrize("skipped", [{(0, MLP)}, {(1, ATTENTION), (1, MLP)}, {(2, ATTENTION)}])
def test_both_skip_alike(skipped):
    layers = Layers(skipped=frozenset(skipped))
    module, fast = (session.through(ROWS, layers, TREE) for _, session in sessions("qwen3"))
    torch.testing.assert_close(fast, module, **CLOSE)


def test_vectors_in_the_place_of_tokens():
    for model, session in sessions("llama"):
        expected, _ = session.feed(ROWS, TREE)
        session.drop()
        vectors = model.embed(torch.tensor(ROWS))
        found = model.head(session.through(vectors, EVERY, TREE))
        torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gpt2"])
def test_probes_see_the_tree_and_leave_no_mark(architecture):
    """A probe with the embedding of a token gets the logits that the token would get in its place."""
    for model, session in sessions(architecture, FEATURES):
        tree = DraftTree()
        first = tree.draw(ROOT, 3)
        tree.draw(first, 8)
        last = tree.draw(ROOT, 11)
        plain = session.look(Draft(2, tree, len(PROMPT)))
        session.drop()
        vectors = model.embed(torch.tensor([30, 31, 32]))
        probes = Probes.embedded(vectors, [last, first, len(tree) + 1])
        seen = session.look(Draft(2, tree, len(PROMPT), probes))
        torch.testing.assert_close(seen.logits, plain.logits, **CLOSE)
        torch.testing.assert_close(seen.features, plain.features, **CLOSE)
        session.drop()
        tokens, parents = [2, 3, 8, 11, 30, 31, 32], [-1, 0, 1, 0, 3, 1, 5]
        as_tokens, _ = session.feed(tokens, parents)
        torch.testing.assert_close(seen.probes, as_tokens[4:], **CLOSE)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gpt2"])
def test_probes_join_at_a_layer(architecture):
    """Probes that equal the states of tokens at a layer get the logits of those tokens. They join at two layers;
    the second probe sees the first."""
    for model, session in sessions(architecture, FEATURES):
        tree = DraftTree()
        first = tree.draw(ROOT, 3)
        tree.draw(ROOT, 11)
        tokens, parents = [2, 3, 11, 30, 31], [-1, 0, 0, 1, 3]
        as_tokens, features = session.feed(tokens, parents)
        session.drop()
        true = {}
        for layer in (1, 2):
            true[layer] = session.through(tokens, Layers(stop=layer), parents)
            session.drop()

        joins = [joining(1, true[1], 3), joining(2, true[2], 4)]
        probes = Probes(joins, [first, len(tree)])
        seen = session.look(Draft(2, tree, len(PROMPT), probes))
        torch.testing.assert_close(seen.logits, as_tokens[:3], **CLOSE)
        torch.testing.assert_close(seen.probes, as_tokens[3:], **CLOSE)
        torch.testing.assert_close(seen.features, features[:3], **CLOSE)
        session.commit([0, 1])
        kept = session.feed([7], [-1])[0]
        session.rewind(len(PROMPT) + 9)
        assert session.length == len(PROMPT) + 2, "no token is read by going back"
        session.rewind(len(PROMPT))
        torch.testing.assert_close(kept[0], session.feed([2, 3, 7], [-1, 0, 1])[0][2], **CLOSE)


def joining(layer, true, row):
    """Return a probe that becomes this row of ``true``, the expected states at the layer."""

    def made(states):
        torch.testing.assert_close(states, true[: len(states)], **CLOSE)
        return true[row : row + 1]

    return Join(layer, 1, made)


def begun_draft(session, layer, read):
    """A draft of which a drafter has read the root and the first nodes through some layers."""
    tree = DraftTree()
    first = tree.draw(ROOT, 3)
    tree.draw(first, 8)
    tree.draw(ROOT, 11)
    draft = Draft(2, tree, len(PROMPT))
    tokens, parents = draft.rows
    states = [
        session.through([token], Layers(stop=layer), [parent])
        for token, parent in zip(tokens[:read], parents[:read], strict=True)
    ]
    return replace(draft, begun=Begun(layer, torch.cat(states)))


BEGUN = some(
    ((architecture, *begun) for architecture in CONFIGS for begun in [(1, 2), (2, 4)]),
    lambda case: case[0] in {"llama", *ALTERNATING} or case[1] == 1,
)


@pytest.mark.parametrize("architecture, layer, read", BEGUN)
def test_the_target_goes_on_from_where_a_drafter_stopped(architecture, layer, read):
    """Checks logits with all that the head does to them, features of layers on either side, and kept rows."""
    for model, session in sessions(architecture, FEATURES):
        draft = begun_draft(session, layer, read)
        seen = session.look(draft)
        assert session.rows == draft.count
        session.commit([0, 1])
        after, _ = session.feed([1], [-1])
        session.rewind(len(PROMPT))
        plain = session.look(replace(draft, begun=None))
        torch.testing.assert_close(seen.logits, plain.logits, **CLOSE)
        torch.testing.assert_close(seen.features, plain.features, **CLOSE)
        session.commit([0, 1])
        torch.testing.assert_close(after, session.feed([1], [-1])[0], **CLOSE)


def test_a_model_that_cannot_go_on_reads_anew():
    """If the layers of a model share more than one hidden state, rows that go on would get other logits."""
    model = language_model(tiny_hf_model("llama"), None, "tiny", lean=False)
    last = model.model.model.layers[-1]
    last.forward = partial(counting, last.forward, [])
    assert not goes_on(model, 1)
    session = model.session(64)
    session.prefill(PROMPT)
    draft = begun_draft(session, 1, 3)
    seen = session.look(draft)
    assert session.rows == draft.count and seen.logits.shape[0] == draft.count


def counting(forward, seen, hidden_states, *rows, **others):
    """Stand in for a layer's forward. Its output depends on more than its rows: on the number of calls so far."""
    seen.append(hidden_states)
    return forward(hidden_states * len(seen), *rows, **others)


def test_an_unknown_architecture_is_one_sentence():
    model = language_model(tiny_hf_model("llama"), None, "tiny", lean=False)
    model.model.model._modules["blocks"] = model.model.model._modules.pop("layers")
    session = model.session(16)
    with pytest.raises(UserError, match="does not know this architecture"):
        session.through([1], EVERY, [-1])


def soft_capped(model, logits):
    cap = getattr(model.model.config, "final_logit_softcapping", None)
    return logits if cap is None else torch.tanh(logits / cap) * cap
