"""One forward over a tree, in every architecture: each row is read as its path alone would be."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.parts.opening import language_model
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model

ARCHITECTURES = sorted(CONFIGS)


@pytest.fixture(scope="module", params=ARCHITECTURES)
def pair(request):
    """(the model as transformers runs it, the same weights in the engine)"""
    plain = tiny_hf_model(request.param)
    plain.set_attn_implementation("eager")
    return plain, language_model(copy.deepcopy(plain), None, request.param)


def logits_of(plain, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return plain(torch.tensor([tokens]), use_cache=False).logits[0]


def some_tokens(count: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (count,), generator=generator).tolist()


def path_to(node: int, parents: list[int]) -> list[int]:
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def test_tree_rows_equal_their_paths_read_alone(pair):
    plain, model = pair
    prefix, tree = some_tokens(30, 1), some_tokens(9, 2)
    parents = [-1, 0, 0, 1, 1, 2, 3, 6, 5]
    session = model.session(16)
    session.prefill(prefix)
    logits, _ = session.feed(tree, parents)
    for node in range(len(tree)):
        alone = logits_of(plain, prefix + [tree[n] for n in path_to(node, parents)])[-1]
        torch.testing.assert_close(logits[node], alone, atol=2e-5, rtol=1e-4)


def test_commit_keeps_the_path_and_nothing_else(pair):
    plain, model = pair
    prefix, tree = some_tokens(20, 3), some_tokens(7, 4)
    parents = [-1, 0, 0, 2, 1, 3, 3]
    session = model.session(8)
    session.prefill(prefix)
    session.feed(tree, parents)
    session.commit([0, 2, 3, 6])
    text = prefix + [tree[n] for n in (0, 2, 3, 6)]
    following = some_tokens(3, 5)
    logits, _ = session.feed(following, [-1, 0, 1])
    torch.testing.assert_close(
        logits, logits_of(plain, text + following)[-3:], atol=2e-5, rtol=1e-4
    )


def test_rows_fed_in_parts_equal_rows_fed_at_once(pair):
    _, model = pair
    prefix, tree = some_tokens(18, 6), some_tokens(6, 7)
    parents = [-1, 0, 0, 1, 2, 2]
    once, parts = model.session(64), model.session(4)
    once.prefill(prefix)
    parts.prefill(prefix)
    together, _ = once.feed(tree, parents)
    apart = torch.cat(
        [
            parts.feed(tree[:1], parents[:1])[0],
            parts.feed(tree[1:3], parents[1:3])[0],
            parts.feed(tree[3:], parents[3:])[0],
        ]
    )
    torch.testing.assert_close(apart, together, atol=2e-5, rtol=1e-4)


def test_features_are_the_hidden_states(pair):
    plain, model = pair
    tokens = some_tokens(15, 8)
    with torch.no_grad():
        states = plain(torch.tensor([tokens]), output_hidden_states=True).hidden_states
    expected = torch.cat([states[1][0], states[2][0]], -1)
    session = model.session(64, features=(1, 2))
    read = session.prefill(tokens[:10])
    _, rest = session.feed(tokens[10:], [-1, 0, 1, 2, 3])
    torch.testing.assert_close(torch.cat([read, rest]), expected, atol=2e-5, rtol=1e-4)


@pytest.fixture(scope="module")
def llama():
    """Like ``pair``. Compiled in a fixture and not at collection, because every process collects the tests."""
    plain = tiny_hf_model("llama", seed=3)
    return plain, language_model(copy.deepcopy(plain), None, "llama")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_tree_on_llama(llama, data):
    plain, model = llama
    size = data.draw(st.integers(1, 24))
    parents = [data.draw(st.integers(-1, node - 1)) for node in range(size)]
    prefix, tree = some_tokens(data.draw(st.integers(1, 20)), 9), some_tokens(size, 10)
    session = model.session(4)
    session.prefill(prefix)
    logits, _ = session.feed(tree, parents)
    node = data.draw(st.integers(0, size - 1))
    path = path_to(node, parents)
    alone = logits_of(plain, prefix + [tree[n] for n in path])[-1]
    torch.testing.assert_close(logits[node], alone, atol=2e-5, rtol=1e-4)
    session.commit(path)
    following, _ = session.feed([5], [-1])
    expected = logits_of(plain, prefix + [tree[n] for n in path] + [5])[-1]
    torch.testing.assert_close(following[0], expected, atol=2e-5, rtol=1e-4)


def test_long_prompts_are_read_in_parts(llama, monkeypatch):
    plain, model = llama
    monkeypatch.setattr("engine.model.session.PREFILL_ROWS", 7)
    tokens = some_tokens(40, 11)
    session = model.session(4)
    session.prefill(tokens[:-1])
    logits, _ = session.feed(tokens[-1:], [-1])
    torch.testing.assert_close(logits[0], logits_of(plain, tokens)[-1], atol=2e-5, rtol=1e-4)
