"""The way of a GPU through whole models: attention and commit by the kernels, interpreted."""

import pytest
import torch

from engine import gpu
from engine.kernels import kv_commit, tree_attention
from engine.language_model import LanguageModel
from tests.engine.tiny import VOCABULARY, tiny_hf_model

TREE = ([1, 2, 3, 4, 5, 6], [-1, 0, 0, 1, 2, 4])  # root, and under it a tree with two branches
PATH = [0, 2, 4, 5]


@pytest.fixture
def on_gpu(monkeypatch):
    """Tensors of the CPU are treated as a GPU's are; counts the kernels' calls."""
    calls = {"attention": 0, "commit": 0}

    def counted(name, function):
        def call(*arguments):
            calls[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(gpu, "takes", lambda tensor: True)
    for module in (tree_attention, kv_commit):
        monkeypatch.setattr(module, "on_gpu", lambda tensor: True)
    monkeypatch.setattr(gpu, "attend", counted("attention", gpu.attend))
    monkeypatch.setattr(gpu, "commit", counted("commit", gpu.commit))
    return calls


def logits_of(architecture: str) -> torch.Tensor:
    """Of a tree after a prefix longer than the window, and of the step after its commit."""
    model = LanguageModel(tiny_hf_model(architecture), None, architecture, lean=False)
    session = model.session(40)
    session.prefill([7 * n % VOCABULARY for n in range(15)])
    first, _ = session.feed(*TREE)
    session.commit(PATH)
    second, _ = session.feed([9, 8], [-1, 0])
    return torch.cat([first, second])


@pytest.mark.parametrize("architecture", ["qwen3", "gemma2", "gpt_oss"])
def test_logits_are_those_of_the_cpu(architecture, request):
    expected = logits_of(architecture)
    calls = request.getfixturevalue("on_gpu")
    found = logits_of(architecture)
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=2e-4)
    assert calls == {"attention": 9, "commit": 1}
