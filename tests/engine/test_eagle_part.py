"""EAGLE cells: every published layout computes what its authors compute, and a wrong one is refused in a sentence."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaDecoderLayer,
    LlamaMLP,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
)

from engine.errors import UserError
from engine.methods.eagle.part import KIND
from engine.methods.shared.eagle_layout import read_cell, write_cell
from engine.methods.shared.opened_cell import check_fits
from engine.parts.digest import FIELD
from engine.parts.loading import ModelPaths, load_models
from tests.engine.eagle_cells import DRAFT, EVERY, TARGET, H, V, checkpoint, tensors_of
from tests.engine.tiny import tiny_model

ROWS = 7


@pytest.fixture(scope="module")
def target():
    return tiny_model("llama", num_hidden_layers=TARGET["num_hidden_layers"])


@pytest.fixture
def saved(tmp_path):
    """saved(layout, change): the folder of a tiny checkpoint; change(config, tensors) may spoil both."""

    def one(layout, change=lambda config, tensors: None):
        config, shapes = EVERY[layout]()
        tensors = tensors_of(shapes)
        change(config, tensors)
        return checkpoint(tmp_path / layout, config, tensors)

    return one


def opened(folder):
    return read_cell(folder, torch.float32, "cpu")


def reference(layout, tensors, states, embedded, config):
    """One pass over a text with the modules of transformers, called in the order of the authors' code.
    states, embedded [R, H] -> [R, H]"""
    inner = config.get("transformer_layer_config", config)
    llama = LlamaConfig(**{**inner, "attn_implementation": "eager"})
    first = "midlayer." if layout == "eagle3" else "layers.0."
    mine = {k.removeprefix(first): v for k, v in tensors.items() if k.startswith(first)}
    attention, mlp = LlamaAttention(llama, 0), LlamaMLP(llama)
    for name in ("q_proj", "k_proj", "v_proj"):
        weight = mine[f"self_attn.{name}.weight"]
        setattr(attention, name, nn.Linear(weight.shape[1], weight.shape[0], bias=False))
    part = {k.removeprefix("self_attn."): v for k, v in mine.items() if k.startswith("self_attn.")}
    attention.load_state_dict(part)
    mlp.load_state_dict(
        {k.removeprefix("mlp."): v for k, v in mine.items() if k.startswith("mlp.")}
    )

    def normed(name, rows):
        norm = LlamaRMSNorm(H, eps=llama.rms_norm_eps)
        norm.load_state_dict({"weight": mine[f"{name}.weight"]})
        return norm(rows)

    residual = states
    if layout == "eagle":
        both = torch.cat([embedded, states], -1)
        residual = given = both @ tensors["fc.weight"].T + tensors["fc.bias"]
    else:
        hidden = normed("hidden_norm", states)
        given = torch.cat([normed("input_layernorm", embedded), hidden], -1)
        residual = hidden if config.get("norm_before_residual") else states
    turn = LlamaRotaryEmbedding(llama)(given[None], torch.arange(len(states))[None])
    causal = torch.full((len(states), len(states)), float("-inf")).triu(1)[None, None]
    rows = residual + attention(given[None], turn, causal)[0][0]
    rows = rows + mlp(normed("post_attention_layernorm", rows))
    for index in range(1, inner["num_hidden_layers"]):
        later, place = LlamaDecoderLayer(llama, index), f"layers.{index}."
        own = {k.removeprefix(place): v for k, v in tensors.items() if k.startswith(place)}
        later.load_state_dict(own)
        rows = later(rows[None], attention_mask=causal, position_embeddings=turn)[0]
    if config.get("norm_output"):
        mine["norm.weight"] = tensors["norm.weight"]
        rows = normed("norm", rows)
    return rows


SCALED = {
    "linear": {"factor": 4.0},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 512,
    },
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 512},
}


@pytest.mark.parametrize("kind", SCALED)
def test_scaled_positions_turn_as_in_llama(kind, saved):
    folder = saved("eagle3", config_says(rope_scaling={"rope_type": kind, **SCALED[kind]}))
    llama = LlamaRotaryEmbedding(LlamaConfig(**json.loads((folder / "config.json").read_text())))
    places = torch.tensor([0, 1, 600, 2000])
    expected = llama(torch.zeros(1), places[None])
    for found, wanted in zip(opened(folder).turn(places), expected, strict=True):
        torch.testing.assert_close(found, wanted[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("layout", EVERY)
def test_half_precision_leaves_the_angles_as_they_are(layout, saved):
    """Rounded frequencies would turn place 2000 by angles that are off by tenths of a radian and more."""
    folder, places = saved(layout), torch.tensor([1, 600, 2000])
    half, whole = read_cell(folder, torch.bfloat16, "cpu"), opened(folder)
    assert half.fc.weight.dtype == torch.bfloat16
    assert torch.equal(half._frequencies, whole._frequencies)
    for found, wanted in zip(half.turn(places), whole.turn(places), strict=True):
        assert torch.equal(found, wanted.bfloat16())


@torch.no_grad()
@pytest.mark.parametrize("layout", EVERY)
def test_a_layout_computes_what_its_authors_do(layout, saved, target):
    folder = saved(layout)
    cell, tensors = opened(folder), load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    check_fits(cell, target)
    features = torch.randn(ROWS, H * (1 if layout == "eagle" else 3))
    states = cell.fuse(features)
    if layout == "eagle31":
        parts = [
            one
            * (one.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()
            * tensors[f"fc_norm.{place}.weight"]
            for place, one in enumerate(features.chunk(3, -1))
        ]
        torch.testing.assert_close(states, torch.cat(parts, -1) @ tensors["fc.weight"].T)
    elif layout != "eagle":
        torch.testing.assert_close(states, features @ tensors["fc.weight"].T)
    if layout == "peagle":
        blank = tensors["mask_hidden"][0] @ tensors["fc.weight"].T
        torch.testing.assert_close(cell.mask_state(), blank)
    embedded = torch.randn(ROWS, H)

    def attend(_, queries, keys, values):
        return nn.functional.scaled_dot_product_attention(
            queries[None], keys[None], values[None], is_causal=True, enable_gqa=True
        )[0]

    found = cell(states, embedded, cell.turn(torch.arange(ROWS)), attend)
    expected = reference(layout, tensors, states, embedded, config)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    if layout == "eagle31":  # the head reads the state that is read next
        said = cell.logits(found, borrowed=None)
        torch.testing.assert_close(
            said, expected @ tensors["lm_head.weight"].T, atol=1e-4, rtol=1e-4
        )


@torch.no_grad()
def test_feature_layers_are_those_of_the_layouts(saved, target):
    layers = target.layers
    assert opened(saved("eagle")).config.layers_of(layers) == (8,), "behind the final norm"
    assert opened(saved("eagle3")).config.layers_of(layers) == (2, 4, 5)
    assert opened(saved("speculators")).config.layers_of(layers) == (1, 3, 6)

    def as_sglang(config, tensors):
        config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [1, 3, 4]}

    assert opened(saved("eagle3", as_sglang)).config.layers_of(layers) == (2, 4, 5)


@torch.no_grad()
def test_the_draft_vocabulary_is_put_in_its_place(saved):
    cell = opened(saved("eagle3"))
    logits = cell.logits(torch.randn(3, H), borrowed=None)
    assert logits.shape == (3, DRAFT)
    wide = cell.spread(logits, V)
    known = cell.t2d.nonzero().flatten()
    assert torch.equal(wide[:, known], logits), "t2d lists the same tokens in the same order"
    assert torch.isinf(wide).sum() == 3 * (V - DRAFT)


@torch.no_grad()
def test_embeddings_and_head_are_borrowed_unless_they_are_there(saved):
    calls = []

    def borrowed(given):
        calls.append(given)
        return torch.zeros(len(given), H)

    def without(config, tensors):
        del tensors["embed_tokens.weight"]

    ids = torch.tensor([3, 4])
    own = opened(saved("eagle"))
    assert torch.equal(own.embed(ids, borrowed), own.embed_tokens.weight[3:5]) and not calls
    opened(saved("eagle", without)).embed(ids, borrowed)
    own.logits(torch.randn(2, H), borrowed)
    assert len(calls) == 2


@pytest.mark.parametrize("layout", EVERY)
def test_files_are_those_of_the_layout(layout, saved, tmp_path):
    folder = saved(layout)
    cell = opened(folder)
    write_cell(cell, tmp_path / "again", {FIELD: "0123"}, torch.float32)
    before, after = (load_file(one / "model.safetensors") for one in (folder, tmp_path / "again"))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]) and tensor.dtype == after[name].dtype
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config[FIELD] == "0123"
    assert opened(tmp_path / "again").config == cell.config


def without(name):
    return lambda config, tensors: tensors.pop(name)


def config_says(**changes):
    return lambda config, tensors: config.update(changes)


def also(name, *shape):
    return lambda config, tensors: tensors.update({name: torch.zeros(shape)})


HALF_TURNED = {"type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}
WRONG = [
    ("eagle", without("fc.weight"), "no tensor fc.weight"),
    ("eagle", without("layers.0.mlp.up_proj.weight"), "lack layers.0.mlp.up_proj.weight"),
    ("eagle", also("layers.0.input_layernorm.weight", H), "layers.0.input_layernorm.weight"),
    ("eagle", also("fc.weight", H, 3 * H), "fc.weight of eagle has the shape"),
    ("eagle", config_says(intermediate_size=41), "promises"),
    ("eagle", config_says(num_attention_heads=0), "num_attention_heads|division|divide"),
    ("eagle", config_says(hidden_size="wide"), "cannot be used"),
    ("eagle", config_says(hidden_size=1 << 40), "hidden_size is"),
    ("eagle", config_says(rope_scaling={"type": "dynamic", "factor": 2.0}), "dynamic"),
    ("eagle", config_says(rope_scaling={"type": "wound"}), "unknown kind 'wound'"),
    ("eagle", config_says(rope_scaling=HALF_TURNED), "turn a part of each head only"),
    ("eagle", config_says(hidden_act="of God"), "hidden_act"),
    ("eagle3", without("norm.weight"), "lack norm.weight"),
    ("eagle3", without("t2d"), "lack t2d"),
    ("eagle3", config_says(draft_vocab_size=DRAFT + 1), "promises"),
    ("eagle3", lambda c, t: t["d2t"].fill_(V), "d2t"),
    ("eagle3", lambda c, t: t["d2t"].copy_(-torch.arange(DRAFT)), "d2t"),
    ("eagle3", config_says(speculators_model_type="medusa"), "of the kind 'medusa'"),
    ("speculators", lambda c, t: c.pop("transformer_layer_config"), "transformer_layer_config"),
    ("speculators", config_says(eagle_aux_hidden_state_layer_ids=["x"]), "feature layers"),
    ("speculators", config_says(eagle_aux_hidden_state_layer_ids=[2, 5]), "2 feature layers"),
    ("peagle", without("mask_hidden"), "lack mask_hidden"),
    ("peagle", lambda c, t: c.pop("mask_token_id"), "mask_token_id is missing"),
    ("peagle", config_says(mask_token_id=V), f"mask_token_id is {V}"),
]


@pytest.mark.parametrize(("layout", "change", "words"), WRONG)
def test_a_wrong_checkpoint_is_one_sentence(layout, change, words, saved):
    with pytest.raises(UserError, match=words) as told:
        opened(saved(layout, change))
    assert str(told.value).endswith(".") and "\n" not in str(told.value)


def test_a_config_nested_too_deeply_and_weights_that_could_run_code_are_refused(saved):
    deep, pickled = saved("eagle"), saved("eagle3")
    (deep / "config.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match="no feature drafter"):
        opened(deep)
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(UserError, match="pickled"):
        opened(pickled)


def other_size(config, tensors):
    inner = config.get("transformer_layer_config", config)
    config["target_hidden_size"] = 2 * inner["hidden_size"]
    tensors["fc.weight"] = torch.zeros(H, 6 * H)


ANOTHER = [
    ("speculators", config_says(eagle_aux_hidden_state_layer_ids=[1, 3, 9]), "8 layers only"),
    ("speculators", other_size, "states of 64 numbers"),
    (
        "eagle3",
        lambda c, t: (c.update(vocab_size=50), t.update(t2d=t["t2d"][:50])),
        "d2t|knows 50 tokens",
    ),
]


@pytest.mark.parametrize(("layout", "change", "words"), ANOTHER)
def test_a_cell_of_another_target_is_one_sentence(layout, change, words, saved, target):
    with pytest.raises(UserError, match=words) as told:
        KIND.load(str(saved(layout, change)), target, torch.float32, "cpu")
    assert str(told.value).endswith(".") and "\n" not in str(told.value)


def test_the_digest_of_another_target_is_refused(saved, tmp_path):
    part = saved("eagle", config_says(**{FIELD: "0" * 16}))
    (tmp_path / "target").mkdir()
    save_file({"x": torch.zeros(1)}, tmp_path / "target" / "model.safetensors")
    paths = ModelPaths(str(tmp_path / "target"), {"eagle": str(part)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.parts.loading.open_model", lambda *_: None)
        with pytest.raises(UserError, match="was trained for another target"):
            load_models(paths, {"eagle": "eagle"})
