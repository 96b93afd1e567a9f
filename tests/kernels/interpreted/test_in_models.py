"""The GPU path through whole models: attention, verdict and commit by the kernels, interpreted."""

import pytest
import torch

from engine.batch.together import decode_together
from engine.core.decode import decode
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.fast.gpu import kernel_calls
from engine.fast.kernels import kv_commit, tree_attention, verify_tree
from engine.methods.chain.drafter import ChainDrafter
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.model.language_model import LanguageModel
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.engine.tiny import VOCABULARY, tiny_hf_model

TREE = ([1, 2, 3, 4, 5, 6], [-1, 0, 0, 1, 2, 4])  # root, and under it a tree with two branches
PATH = [0, 2, 4, 5]


@pytest.fixture
def on_gpu(monkeypatch):
    """Treat CPU tensors as if they were on a GPU, and count the kernel calls."""
    calls = {"attention": 0, "commit": 0}

    def counted(name, function):
        def call(*arguments):
            calls[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(kernel_calls, "takes", lambda tensor: True)
    for module in (tree_attention, kv_commit, verify_tree):
        monkeypatch.setattr(module, "on_gpu", lambda tensor: True)
    monkeypatch.setattr(kernel_calls, "attend", counted("attention", kernel_calls.attend))
    monkeypatch.setattr(kernel_calls, "commit", counted("commit", kernel_calls.commit))
    return calls


def model_of(architecture: str, static: bool, **changes) -> LanguageModel:
    module = tiny_hf_model(architecture, **changes)
    return language_model(module, None, architecture, lean=static, static=static)


def logits_of(architecture: str, static: bool) -> torch.Tensor:
    """Return the logits of a tree after a prefix longer than the window, and of the step after its commit."""
    session = model_of(architecture, static).session(40)
    session.prefill([7 * n % VOCABULARY for n in range(15)])
    first, _ = session.feed(*TREE)
    session.commit(PATH)
    second, _ = session.feed([9, 8], [-1, 0])
    return torch.cat([first, second])


@pytest.mark.parametrize(
    ("architecture", "static"),
    [("qwen3", True), ("gemma2", True), ("gpt_oss", True), ("gemma2", False)],
)
def test_logits_are_those_of_the_cpu(architecture, static, request):
    expected = logits_of(architecture, False)
    calls = request.getfixturevalue("on_gpu")
    found = logits_of(architecture, static)
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=2e-4)
    assert calls == {"attention": 9, "commit": 1}


def chain(model) -> ChainDrafter:
    return ChainDrafter({"length": 3, "stop_below": 0.0}, model, VOCABULARY)


def tree(model) -> DySpecDrafter:
    settings = {"budget": 4, "depth": 2, "width": 2, "sharpness": 2.0, "stop_below": 0.0}
    return DySpecDrafter(settings, model, VOCABULARY)


LOOPS = [
    ("greedy", 0.0, chain),
    ("rejection", 0.9, chain),
    ("rejection", 0.9, tree),
    ("sampler_match", 0.9, tree),
]


def outputs(static: bool, rule: str, temperature: float, drafter) -> list[list[int]]:
    """The outputs of unrecorded steps, in which the kernel judges on static buffers."""
    model = model_of("llama", static, num_hidden_layers=1)
    sampling, prompt = Sampling(temperature, seed=2), [3, 14, 15, 9]
    request = TextRequest(drafter(model), verifier(rule), sampling, prompt, 6)
    return [step.output for step in decode(model, request, recorded=False)]


@pytest.mark.parametrize(("rule", "temperature", "drafter"), LOOPS)
def test_the_loop_writes_what_it_writes_on_the_cpu(
    rule, temperature, drafter, request, monkeypatch
):
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.SMALLEST", 64)  # the interpreter is slow
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.MARGIN", 32)
    expected = outputs(False, rule, temperature, drafter)
    request.getfixturevalue("on_gpu")
    assert outputs(True, rule, temperature, drafter) == expected


def test_several_texts_in_one_pass(request, monkeypatch):
    """Prefixes and trees of different lengths in one launch of the attention kernel per layer."""
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.SMALLEST", 64)
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.MARGIN", 32)

    def requests(model):
        for drafter, prompt in ((tree(model), [3, 14, 15, 9, 2]), (chain(model), [5])):
            yield TextRequest(drafter, verifier("greedy"), Sampling(), prompt, 5)

    plain = model_of("llama", False, num_hidden_layers=1)
    expected = [[step.output for step in decode(plain, one)] for one in requests(plain)]
    calls = request.getfixturevalue("on_gpu")
    model = model_of("llama", True, num_hidden_layers=1)
    found = [[], []]
    for index, step in decode_together(model, list(requests(plain)), recorded=False):
        found[index].append(step.output)
    assert found == expected
    assert calls["attention"] > 0
