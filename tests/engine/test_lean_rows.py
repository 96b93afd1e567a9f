"""Passes with few launches against the module's own: same weights, same numbers, on static buffers."""

import copy
from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from engine.batch.together import decode_together
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.fast.gpu import kernel_calls
from engine.fast.gpu.buffer_sets import BufferSets
from engine.fast.gpu.host_free import HostFree
from engine.fast.gpu.inputs import Size, StepInputs
from engine.fast.gpu.lean_rows import LeanRows, _normed
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.gpu.static_step import step
from engine.fast.gpu.text_buffers import refuse_tf32
from engine.fast.kernels import tree_attention
from engine.model.language_model import LanguageModel
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.engine.tape import run_taped
from tests.engine.test_static import PROMPT, TREE, drafters, steps_of, texts
from tests.engine.tiny import CONFIGS, tiny_hf_model

CLASS = ("llama", "mistral", "qwen2", "qwen3")
MOST_LAUNCHES = {"llama": 15, "qwen3": 18}  # per layer; qwen3 norms its heads
ROUNDING = {torch.float32: 0, torch.bfloat16: 2}  # more launches, because two norms round twice
META = torch.device("meta")


def both(architecture: str, **changes) -> tuple[LanguageModel, LanguageModel]:
    """Return (the plain model, the lean model on static buffers), each on its own copy of the weights."""
    module = tiny_hf_model(architecture, **changes)
    lean = language_model(copy.deepcopy(module), None, "lean", static=True)
    assert isinstance(lean.buffer_sets.module, LeanRows)
    return language_model(module, None, "plain", lean=False), lean


@pytest.mark.parametrize("architecture", CLASS)
def test_steps_are_those_of_the_module(architecture, monkeypatch):
    """Also where only their operations run again."""
    monkeypatch.setattr(BufferSets, "run", run_taped)
    plain, lean = both(architecture)
    for one, other in zip(drafters(plain), drafters(lean), strict=True):
        expected, found = steps_of(plain, one), steps_of(lean, other)
        assert texts(found) == texts(expected)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a.logits, b.logits, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "changes", [{"attention_bias": True}, {"mlp_bias": True}, {"head_dim": 12}], ids=str
)
def test_features_and_biases(changes):
    module = tiny_hf_model("llama")
    config = copy.deepcopy(module.config)
    for name, value in changes.items():
        setattr(config, name, value)
    module = type(module)(config).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, 0, 0.25)
    layers = (0, 2, 3)
    plain = language_model(copy.deepcopy(module), None, "plain", lean=False).session(40, layers)
    lean = language_model(module, None, "lean", static=True).session(40, layers)
    for session in (plain, lean):
        session.prefill(PROMPT)
    for found, expected in zip(lean.feed(*TREE), plain.feed(*TREE), strict=True):
        torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-4)


def test_several_texts_in_one_pass():
    plain, lean = both("qwen3")

    def written(model):
        rule, found = verifier("rejection"), [[], [], []]
        wanted = [
            TextRequest(drafter, rule, Sampling(0.9, seed=seed), PROMPT[: 5 + seed], 12)
            for seed, drafter in enumerate(drafters(model))
        ]
        for index, one in decode_together(model, wanted, recorded=False):
            found[index] += one.output
        return found

    assert written(lean) == written(plain)


def test_no_weight_exists_twice():
    _, lean = both("llama")
    held = [*lean.model.parameters()]
    for layer in lean.buffer_sets.module._layers:
        held += [layer._qkv, layer._gate_up]
    storages = {each.untyped_storage().data_ptr(): each.untyped_storage() for each in held}
    weights = sum(each.numel() * each.element_size() for each in lean.model.parameters())
    assert sum(storage.nbytes() for storage in storages.values()) == weights


@pytest.mark.parametrize("architecture", sorted(set(CONFIGS) - set(CLASS)))
def test_other_models_keep_their_own(architecture):
    model = language_model(tiny_hf_model(architecture), None, "other", static=True)
    assert model.buffer_sets.module is model.model


class Launches(TorchDispatchMode):
    """Counts operations other than views and allocations."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = function._schema.name.removeprefix("aten::")
        if not function.is_view and name not in ("new_empty", "empty", "_unsafe_view"):
            self.counts[name] += 1
        return function(*arguments, **(named or {}))


@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
@pytest.mark.parametrize("architecture", sorted(MOST_LAUNCHES))
def test_few_launches_and_no_wait_for_the_host(architecture, dtype, monkeypatch):
    """A norm for which torch has no kernel on the meta device counts as one operation, as on CUDA."""
    pytest.importorskip("triton")
    from engine.fast.kernels.compiled import caught

    monkeypatch.setattr(kernel_calls, "takes", lambda tensor: True)
    monkeypatch.setattr(tree_attention, "on_gpu", lambda tensor: True)
    monkeypatch.setattr(
        torch.nn.functional, "rms_norm", lambda rows, *_: torch.empty_like(rows).copy_(rows)
    )
    found = {}
    for layers in (2, 3):
        with META:
            module = tiny_hf_model(architecture, num_hidden_layers=layers).to(dtype)
            model = language_model(module, None, "lean", static=True)
        cache, inputs = StaticCache.empty(layers, 64, 2), StepInputs(Size.of(4, 3), META, 2)
        with torch.no_grad(), caught() as launches:
            step(model.buffer_sets.module, inputs, cache)  # makes the buffers
            launches.clear()
            with HostFree(), Launches() as counted:
                step(model.buffer_sets.module, inputs, cache)
        counted.counts.pop("empty_like")
        found[layers] = counted.counts.total() + len(launches)
    assert found[3] - found[2] <= MOST_LAUNCHES[architecture] + ROUNDING[dtype], counted.counts


def test_features_cost_no_copies(monkeypatch):
    """The states before each layer are kept by not overwriting them."""
    _, lean = both("llama")
    copies = {}
    for features in ((), (0, 2, 3)):
        cache, inputs = StaticCache.empty(lean.layers, 64), StepInputs(Size.of(4, 3), lean.device)
        with torch.no_grad(), Launches() as counted:
            step(lean.buffer_sets.module, inputs, cache, features)
        copies[features] = counted.counts["clone"]
    assert copies[0, 2, 3] == copies[()]


def test_float32_on_cuda_needs_exact_products():
    cuda, matmul = torch.device("cuda", 0), torch.backends.cuda.matmul
    refuse_tf32(torch.float32, cuda)
    before, matmul.allow_tf32 = matmul.allow_tf32, True
    try:
        refuse_tf32(torch.bfloat16, cuda)
        refuse_tf32(torch.float32, torch.device("cpu"))
        with pytest.raises(UserError, match="allow_tf32"):
            refuse_tf32(torch.float32, cuda)
    finally:
        matmul.allow_tf32 = before


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_norms_round_where_the_module_rounds(dtype):
    generator = torch.Generator().manual_seed(5)
    module = LlamaRMSNorm(64).to(dtype)
    module.weight.data = (2 * torch.rand(64, generator=generator)).to(dtype)
    rows = (3 * torch.randn(200, 64, generator=generator)).to(dtype)
    assert torch.equal(_normed(rows, module), module(rows))
    once = torch.nn.functional.rms_norm(rows, (64,), module.weight, module.variance_epsilon)
    assert torch.equal(once, module(rows)) == (dtype == torch.float32), "else this test is blind"
