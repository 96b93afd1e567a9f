"""The lean forward against the module's own: same weights, same numbers."""

import copy

import pytest
import torch

from engine.cpu import lean, lean_layer, lean_order
from engine.cpu.lean import fits
from engine.cpu.lean_order import Columns, Packed, Rows, order
from engine.cpu.model import LeanLanguageModel
from engine.gpu.model import JoinedModel
from engine.opening import language_model
from engine.target.language_model import LanguageModel
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model

ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
DYNAMIC = {
    "rope_type": "dynamic",
    "rope_theta": 10000.0,
    "factor": 2.0,
    "original_max_position_embeddings": 32,
}
CASES = {
    "llama": ("llama", {}),
    "llama, biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, scaled rope": ("llama", {"rope_parameters": ROPE}),
    "llama, rope by length": ("llama", {"rope_parameters": DYNAMIC}),
    "llama, tied head": ("llama", {"tie_word_embeddings": True}),
    "llama, one k head for each q head": ("llama", {"num_key_value_heads": 4}),
    "llama, wide heads": ("llama", {"head_dim": 24}),
    "mistral, window": ("mistral", {}),
    "qwen2, biases, windows": ("qwen2", {}),
    "qwen3, norms of q and k": ("qwen3", {}),
}
FEATURES = (0, 2, 3)
PREFIX, TREE = 30, [-1, 0, 0, 1, 1, 2, 3, 6, 5]


def tokens(count: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (count,), generator=generator).tolist()


@pytest.fixture(params=[Columns, Rows, Packed], ids=["columns", "rows", "packed"])
def each_order(request, monkeypatch):
    """Activations in either order, whichever this machine would pick."""
    monkeypatch.setattr(lean_order, "WORTH_PACKING", 1)
    monkeypatch.setattr(lean_layer, "order", lambda: request.param)
    monkeypatch.setattr(lean, "order", lambda: request.param)


@pytest.fixture(params=CASES.values(), ids=CASES)
def pair(request, each_order):
    """(through the module, lean), each on its own copy of the weights"""
    architecture, changes = request.param
    plain = tiny_hf_model(architecture, **changes)
    randomise_vectors(plain)
    return both(plain)


def randomise_vectors(model) -> None:
    """Biases start as 0 and norms as 1; here they shall matter."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)


def both(plain) -> tuple[LanguageModel, LanguageModel]:
    module = language_model(copy.deepcopy(plain), None, "module", lean=False)
    lean = language_model(copy.deepcopy(plain), None, "lean")
    assert type(module) is JoinedModel and type(lean) is LeanLanguageModel
    return module, lean


def read(model: LanguageModel) -> list[torch.Tensor]:
    """Everything a session gives back over prompt, tree in parts, commits and a chain."""
    session = model.session(16, FEATURES)
    seen = [session.prefill(tokens(PREFIX, 1))]
    drafted = tokens(len(TREE), 2)
    seen += session.feed(drafted[:4], TREE[:4])
    seen += session.feed(drafted[4:], TREE[4:])
    session.commit([0, 1, 3, 6])
    seen += session.feed(tokens(3, 3), [-1, 0, 1])
    session.commit([0, 1])
    seen.append(session.extend(tokens(5, 4)))
    seen += session.feed(tokens(1, 5), [-1])
    return seen


def test_everything_is_the_same(pair):
    module, written_out = pair
    for got, expected in zip(read(written_out), read(module), strict=True):
        torch.testing.assert_close(got, expected, atol=3e-5, rtol=1e-4)


def test_shapes_and_types_are_the_same_in_bf16(each_order):
    plain = tiny_hf_model("llama").bfloat16()
    module, written_out = both(plain)
    for got, expected in zip(read(written_out), read(module), strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        difference = (got.float() - expected.float()).abs().mean()
        assert difference < 0.02 * expected.float().abs().mean()


def test_the_module_still_works_and_no_weight_exists_twice(each_order):
    plain = tiny_hf_model("qwen2")
    expected = plain(torch.tensor([tokens(20, 6)])).logits
    weights = sum(p.numel() * p.element_size() for p in plain.parameters())
    model = language_model(plain, None, "lean")
    plain.set_attn_implementation("sdpa")
    got = plain(torch.tensor([tokens(20, 6)])).logits
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    assert storages(model) < 1.01 * weights  # the norms hold a few constants


def storages(model: LanguageModel) -> int:
    """Bytes of all tensors that the model and its lean forward hold, each storage once."""
    held = list(model.model.parameters())
    for layer in model.lean._layers:
        for part in vars(layer).values():
            held += [t for t in getattr(part, "__dict__", {}).values() if torch.is_tensor(t)]
    packed = {id(t): t.numel() * t.element_size() for t in held if t.layout == torch._mkldnn}
    dense = [t.untyped_storage() for t in held if t.layout != torch._mkldnn]
    by_place = {storage.data_ptr(): storage.nbytes() for storage in dense}
    return sum(packed.values()) + sum(by_place.values())


def test_one_row_and_many_rows_agree():
    _, lean = both(tiny_hf_model("llama"))
    text = tokens(12, 7)
    once, singly = lean.session(32), lean.session(32)
    together, _ = once.feed(text, range(-1, len(text) - 1))
    for position, token in enumerate(text):
        alone, _ = singly.feed([token], [-1])
        singly.commit([0])
        torch.testing.assert_close(alone[0], together[position], atol=1e-5, rtol=1e-5)


def test_hidden_rows_go_through_the_head():
    module, lean = both(tiny_hf_model("llama"))
    hidden = torch.randn(5, module.hidden_size)
    torch.testing.assert_close(lean.head(hidden), module.head(hidden), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_only_the_class_takes_the_lean_path(architecture):
    llama_like = architecture in ("llama", "mistral", "qwen2", "qwen3")
    assert fits(tiny_hf_model(architecture)) == llama_like


def test_changed_modules_keep_their_own_forward():
    activation = tiny_hf_model("llama", hidden_act="gelu")
    wrapped = tiny_hf_model("llama")

    class Adapter(torch.nn.Linear):
        pass

    wrapped.model.layers[0].mlp.up_proj.__class__ = Adapter
    assert not fits(activation)
    assert not fits(wrapped)


def test_one_order_a_process():
    assert order() in (Columns, Rows, Packed) and order() is order()
