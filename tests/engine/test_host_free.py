"""No pass on static buffers waits for the host, so that a CUDA graph can hold it.

The models are on torch's meta device. Like a GPU, it shows every copy from and to the host, and it
holds no numbers that could be read. Attention goes to its Triton kernel, whose launches are caught
and not carried out.
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine.core.sampling import Sampling, distribution
from engine.fast.gpu import kernel_calls
from engine.fast.gpu.host_free import HostFree, WaitsForHost
from engine.fast.gpu.inputs import Size, StepInputs
from engine.fast.gpu.question import JudgingKey
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.gpu.static_step import chain, step
from engine.fast.gpu.verdict import JudgedInputs, judged
from engine.fast.kernels import kv_commit, tree_attention, truncation, verify_tree
from engine.model.language_model import LanguageModel
from engine.parts.opening import language_model
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model

pytest.importorskip("triton")
from engine.fast.kernels.compiled import caught

META = torch.device("meta")


@pytest.fixture
def as_on_gpu(monkeypatch):
    monkeypatch.setattr(kernel_calls, "takes", lambda tensor: True)
    for module in (tree_attention, verify_tree, kv_commit, truncation):
        monkeypatch.setattr(module, "on_gpu", lambda tensor: True)


def model_of(architecture: str) -> LanguageModel:
    with META:
        module = tiny_hf_model(architecture).to(torch.bfloat16)
        return language_model(module, None, architecture, static=True)


def one_step(model: LanguageModel):
    cache = StaticCache.empty(model.layers, 64, 2)
    inputs = StepInputs(Size.of(4, 3), META, sequences=2)
    with torch.no_grad(), caught() as launches, HostFree():
        logits, features = step(model.model, inputs, cache, (0, 3))
    assert logits.shape == (2, 4, VOCABULARY) and features.shape[:2] == (2, 4)
    assert logits.device == META
    return launches


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_a_pass_asks_the_host_nothing(architecture, as_on_gpu):
    model = model_of(architecture)
    launches = one_step(model)
    assert len(launches) == 2 * model.layers


def test_nor_does_it_where_attention_has_no_kernel():
    assert not one_step(model_of("gemma2"))


LAWS = [Sampling(), Sampling(0.8), Sampling(0.8, top_k=5), Sampling(0.8, top_p=0.9)]


@pytest.mark.parametrize("sampling", LAWS)
def test_a_chain_asks_the_host_nothing(sampling, as_on_gpu):
    model = model_of("llama")
    cache = StaticCache.empty(model.layers, 64)
    passes = [StepInputs(Size(rows, 1), META) for rows in (2, 1, 1)]
    with torch.no_grad(), caught(), HostFree():
        drawn = torch.empty(3, dtype=torch.float64, device=META)
        ids, laws = chain(model.model, passes, cache, VOCABULARY, sampling, drawn)
    assert ids.shape == (3,) and ids.dtype == torch.int32
    assert laws is None if sampling.greedy else laws.shape == (3, VOCABULARY)


VERDICTS = [
    JudgingKey("greedy", Sampling(), frozenset({"one_hot"})),
    JudgingKey("rejection", Sampling(0.8), frozenset({"iid"})),
    JudgingKey("rejection", Sampling(0.8, top_k=5, top_p=0.9), frozenset({"without_replacement"})),
    JudgingKey("sampler_match", Sampling(0.8), frozenset({"one_hot"})),
]


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_a_pass_with_its_verdict_asks_the_host_nothing(architecture, as_on_gpu):
    """The pass reads four texts, each under its own law, and moves the kept rows and their features."""
    model = model_of(architecture)
    cache = StaticCache.empty(model.layers, 64, len(VERDICTS))
    size = Size.of(4, 0)
    with torch.no_grad(), caught() as launches:
        step(model.model, StepInputs(size, META, len(VERDICTS)), cache)  # makes the buffers
        inputs = JudgedInputs(size, META, VERDICTS, VOCABULARY)
        cache.locate()
        launches.clear()
        with HostFree():
            logits, features, numbers = judged(model.model, inputs, cache, (0, 3))
    assert logits.shape == (4, 4, VOCABULARY) and features.shape[:2] == (4, 4)
    assert numbers.shape == (4, 4 + 3 * 3) and numbers.dtype == torch.int32
    names = [launch.kernel.__name__ for launch in launches]
    assert [name for name in names if name == "_verify_kernel"] == ["_verify_kernel"] * 4
    assert names[-1] == "_commit_kernel"


class Sorts(TorchDispatchMode):
    """Notes operations that sort the vocabulary, or a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = function._schema.name.removeprefix("aten::")
        if name in ("sort", "topk", "kthvalue") and arguments[0].shape[-1] >= VOCABULARY:
            self.seen.append(name)
        return function(*arguments, **(named or {}))


@pytest.mark.parametrize("sampling", [Sampling(0.8, top_k=5), Sampling(0.8, top_p=0.9)])
def test_a_verdict_sorts_no_vocabulary(sampling, as_on_gpu):
    law = JudgingKey("sampler_match", sampling, frozenset({"one_hot"}))
    inputs = JudgedInputs(Size.of(8, 0), META, [law], VOCABULARY)
    logits = torch.empty(8, VOCABULARY, device=META)
    with torch.no_grad(), caught() as launches, Sorts() as sorts:
        inputs.judge(0, logits)
    assert [one.kernel.__name__ for one in launches] == ["_truncate_kernel", "_verify_kernel"]
    assert not sorts.seen
    with torch.no_grad(), Sorts() as sorts:
        distribution(logits, sampling)  # the method for few rows, and for the CPU
    assert sorts.seen


def test_nor_where_layers_differ_so_that_no_kernel_moves_rows(as_on_gpu):
    cache = StaticCache.empty(2, 32)
    for layer, width in zip(cache.layers, (4, 8), strict=True):
        rows = torch.empty(1, 2, 5, width, device=META)
        layer.update(rows, rows)
    cache.locate()
    numbers = torch.empty(1, 6, dtype=torch.int32, device=META)
    with caught() as launches, HostFree():
        cache.move(numbers[:, 0], numbers, numbers[:, 1])
    assert not launches


WAITING = {
    "a number": lambda x: x[0].item(),
    "a truth": lambda x: bool((x > 0).any()),
    "nonzero": lambda x: x.nonzero(),
    "a mask": lambda x: x[x > 0],
    "to the host": lambda x: x.cpu(),
    "from the host": lambda x: x + torch.tensor([1.0]).to(x.device),
    "into a buffer": lambda x: x.copy_(torch.zeros(3, device="cpu")),
}


@pytest.mark.parametrize("what", WAITING)
def test_what_waits_is_seen(what):
    x = torch.ones(3, device=META)
    with pytest.raises(WaitsForHost), HostFree():
        WAITING[what](x)
