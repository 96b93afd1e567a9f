"""Kangaroo: the adapter's file, what the adapter reads, and that a good adapter makes long drafts."""

import json
from itertools import product

import pytest
import torch
from safetensors.torch import save_file

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.kangaroo.fast import CompiledAdapterReader, compiled_readers
from engine.methods.kangaroo.part import KIND, Adapter, AdapterConfig, AdapterReader
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import steps_of, text_of
from tests.engine.tiny import tiny_hf_model, tiny_model
from tests.grids import some

PROMPT = [5, 9, 2, 40, 7, 7, 12, 5, 9, 2]


def adapter(exit_layer=1, **changes):
    torch.manual_seed(3)
    return Adapter(AdapterConfig(32, 4, 2, 8, exit_layer=exit_layer, **changes)).eval()


def run(target, part, sampling=None, **options):
    models = Models(target, {"kangaroo": part.requires_grad_(False)})
    return steps_of(models, "kangaroo", PROMPT, 24, sampling, "sampler_match", **options)


def transplanted(module):
    """Return the second layer of a two-layer target as an adapter after the first layer. Its MLP is set to zero."""
    second = module.model.layers[1]
    with torch.no_grad():
        second.mlp.down_proj.weight.zero_()
    made = adapter()
    weights = {f"layers.0.{name}": each for name, each in second.state_dict().items()}
    kept = {name: each for name, each in weights.items() if name in made.state_dict()}
    made.load_state_dict({**kept, "norm.weight": module.model.norm.weight.data})
    return made


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_an_adapter_that_is_the_rest_of_the_target_is_always_right(temperature):
    """Its columns and places are then those of the target's own layer, even after steps that end with a bonus."""
    module = tiny_hf_model("llama", num_hidden_layers=2)
    made = transplanted(module)
    target = language_model(module, None, "tiny", lean=False)
    steps = run(target, made, Sampling(temperature, seed=4), length=3, confidence=0.0)
    q = [q for step in steps for q in step.tree.q]
    p = [float(step.p[row, token]) for step in steps for row, token in enumerate(step.tree.tokens)]
    if temperature:
        assert q == pytest.approx(p, rel=1e-3)
    else:
        assert all(len(step.verdict.accepted) == len(step.tree) for step in steps)
        assert len(steps) == 6


GRID = product(["llama", "gemma2", "gpt2", "gpt_oss"], [0.0, 0.8])
ALONE = ("llama", 0.0)
"""What a temperature changes, no architecture does: greedy decoding is tried with one of them."""


@pytest.mark.parametrize(
    "architecture, temperature", some(GRID, lambda case: case[1] or case == ALONE)
)
def test_the_text_of_plain_decoding(architecture, temperature):
    target, sampling = tiny_model(architecture), Sampling(temperature, seed=4)
    plain = steps_of(Models(target), "none", PROMPT, 24, sampling, "sampler_match")
    steps = run(target, adapter(2), sampling, length=3, confidence=0.0)
    assert text_of(steps) == text_of(plain)
    drafted = sum(len(step.tree) for step in steps)
    assert sum(step.passes.get("own layers", 0) for step in steps) == drafted > 10


def test_it_stops_where_it_is_unsure():
    steps = run(tiny_model("llama"), adapter(), length=4, confidence=1.0)
    assert {len(step.tree) for step in steps[:-1]} == {1}
    gauge = steps[0].tree.exhibits[1]
    assert gauge.mark == 1.0 and gauge.value == pytest.approx(float(steps[0].tree.laws[0].max()))


def test_reading_in_pieces_is_reading_at_once():
    made, target = adapter(num_hidden_layers=2), tiny_model("llama")
    states = torch.randn(9, 32)
    whole = AdapterReader(made, target).read(states)
    reader = AdapterReader(made, target)
    first = reader.read(states[:3])
    reader.read(torch.randn(4, 32))
    reader.rewind(3)
    pieces = torch.cat([first, *(reader.read(states[at : at + 2]) for at in range(3, 9, 2))])
    torch.testing.assert_close(pieces, whole, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(made(states[None])[0], whole, rtol=1e-4, atol=1e-5)


def test_the_compiled_adapter_gives_the_numbers_of_the_module():
    """With rows that are forgotten, and with more rows than the first buffers hold."""
    target = language_model(tiny_hf_model("llama"), None, "tiny")
    made = adapter(num_hidden_layers=2).requires_grad_(False)
    plain = made.reader(target)
    made.make_reader = compiled_readers(made, target)
    compiled = made.reader(target)
    assert type(plain) is AdapterReader and isinstance(compiled, CompiledAdapterReader)
    states = torch.randn(150, 32, generator=torch.Generator().manual_seed(1))
    for start, stop in [(0, 20), (20, 21), (21, 24), (23, 24), (22, 29), (29, 140), (140, 150)]:
        found = []
        for reader in (plain, compiled):
            reader.rewind(start)
            found.append(reader.logits(states[start:stop]))
        assert [reader.length for reader in (plain, compiled)] == [stop, stop]
        torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)


def published(folder, **config):
    """A checkpoint in the authors' layout, but in safetensors: a Llama config, 4 heads that share no keys or values."""
    torch.manual_seed(5)
    attention = {f"{one}_proj.weight": torch.randn(32, 32) for one in "qkvo"}
    tensors = {f"layers.0.self_attn.{name}": each for name, each in attention.items()}
    tensors["layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    tensors["layers.0.input_layernorm.weight"] = torch.ones(32)
    tensors["norm.weight"] = torch.ones(32)
    own = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-06,
        "vocab_size": 61,
    }
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(own | config))
    return tensors


def test_a_published_checkpoint_loads(tmp_path):
    tensors = published(tmp_path)
    found = KIND.load(str(tmp_path), tiny_model("llama"), None, "cpu")
    assert found.config == AdapterConfig(32, 4, 4, 8, exit_layer=2)
    assert torch.equal(
        found.layers[0].self_attn.k_proj.weight, tensors["layers.0.self_attn.k_proj.weight"]
    )


def test_a_target_may_be_wide():
    found = AdapterConfig.of({"hidden_size": 5120, "num_attention_heads": 40})
    assert (found.hidden_size, found.head_dim) == (5120, 128)
    with pytest.raises(ValueError, match="is not a valid hidden_size"):
        AdapterConfig.of({"hidden_size": 1 << 40, "num_attention_heads": 40})


@pytest.mark.parametrize(
    "config, told",
    [
        ({"hidden_size": None}, "its config has no hidden_size"),
        ({"num_attention_heads": "four"}, "'four' is not a valid num_attention_heads"),
        ({"exit_layer": 3}, "it stands behind 3 layers of the target's 3"),
        ({"head_dim": 7}, "cannot be rotated"),
        ({"rope_parameters": ["default"]}, "its rope_parameters are no object"),
        ({"rope_theta": -1.0}, "-1.0 is not a valid rope_theta"),
        ({"num_attention_heads": 10**9, "head_dim": 8}, "is not a valid num_attention_heads"),
    ],
)
def test_a_wrong_one_is_refused_in_one_sentence(tmp_path, config, told):
    published(tmp_path, **config)
    with pytest.raises(UserError, match=told) as found:
        KIND.load(str(tmp_path), tiny_model("llama"), None, "cpu")
    assert "\n" not in str(found.value) and str(found.value).endswith(".")
