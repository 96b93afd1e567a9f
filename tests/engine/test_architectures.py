"""One forward over a tree, in every architecture: each row is read as its path alone would be."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.parts.opening import language_model
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model

ARCHITECTURES = sorted(CONFIGS)
THROUGH_MODULES = ("gemma2", "mistral", "qwen2", "qwen3")
"""``test_compiled.py`` compares their compiled passes with those of the module, which are read here."""


@pytest.fixture(scope="module", params=ARCHITECTURES)
def pair(request):
    """Return (the model as transformers runs it, the same weights in the engine)."""
    name = request.param
    plain = tiny_hf_model(name)
    plain.set_attn_implementation("eager")
    lean = name not in THROUGH_MODULES
    return plain, language_model(copy.deepcopy(plain), None, name, lean)


def read_by(plain, tokens: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (logits [T, V], hidden states [T, 2 H] of the layers 1 and 2), computed by transformers."""
    with torch.no_grad():
        read = plain(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
    return read.logits[0], torch.cat([read.hidden_states[n][0] for n in (1, 2)], -1)


def some_tokens(count: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (count,), generator=generator).tolist()


def path_to(node: int, parents: list[int]) -> list[int]:
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("features", [(), (1, 2)], ids=["plain", "features"])
def test_a_tree_read_in_parts_is_its_paths_read_alone(pair, features):
    """Its rows, the hidden states of prompt and rows, and what follows the kept path, which has left out rows between."""
    plain, model = pair
    prefix, tree = some_tokens(30, 1), some_tokens(9, 2)
    parents, kept = [-1, 0, 0, 1, 1, 2, 3, 6, 5], [0, 2, 5, 8]
    session = model.session(4, features)
    states = [session.prefill(prefix)]
    parts = [session.feed(tree[a:b], parents[a:b]) for a, b in ((0, 1), (1, 3), (3, 9))]
    logits = torch.cat([rows for rows, _ in parts])
    states += [rows for _, rows in parts]
    for node in range(len(tree)):
        alone, below = read_by(plain, prefix + [tree[n] for n in path_to(node, parents)])
        close(logits[node], alone[-1])
        if features:
            close(torch.cat(states)[[*range(30), 30 + node]], below[[*range(30), -1]])
    session.commit(kept)
    following = some_tokens(3, 5)
    text = prefix + [tree[n] for n in kept] + following
    close(session.feed(following, [-1, 0, 1])[0], read_by(plain, text)[0][-3:])


@pytest.fixture(scope="module")
def llama():
    """Return a pair as ``pair`` does. It is compiled in a fixture and not at collection, because every process collects
    the tests."""
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
    text = prefix + [tree[n] for n in path]
    close(logits[node], read_by(plain, text)[0][-1])
    session.commit(path)
    close(session.feed([5], [-1])[0][0], read_by(plain, [*text, 5])[0][-1])


def test_long_prompts_are_read_in_parts(llama, monkeypatch):
    plain, model = llama
    monkeypatch.setattr("engine.model.session.PREFILL_ROWS", 7)
    tokens = some_tokens(40, 11)
    session = model.session(4)
    session.prefill(tokens[:-1])
    close(session.feed(tokens[-1:], [-1])[0][0], read_by(plain, tokens)[0][-1])
