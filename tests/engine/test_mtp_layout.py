"""MTP layers: in every published spelling they draft what the formula says, and what cannot be read is refused in a sentence."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer, Qwen3RotaryEmbedding

from engine.errors import UserError
from engine.methods.mtp.mtp_layout import read_mtp, write_mtp
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from engine.parts.mtp_fields import own_layer
from tests.drafters.writing import begun
from tests.engine.tiny import language_model, tiny_hf_model

PROMPT = [3, 14, 15, 9, 2, 6, 5, 35]
DRAFTED = 4
H = 32


def layer(count):
    """The tensors of a layer like the target's, by the names that Qwen3 gives them."""
    source = Qwen3DecoderLayer(tiny_hf_model("qwen3").config, 0)
    torch.manual_seed(count)
    return {
        name: 0.25 * torch.randn(each.shape) + (each.dim() == 1)
        for name, each in source.state_dict().items()
    }


def pieces():
    torch.manual_seed(11)
    norms = {name: 1 + 0.25 * torch.randn(H) for name in ("token", "state", "last")}
    return {**norms, "W": 0.25 * torch.randn(H, 2 * H), "layer": layer(12)}


def spelled(prefix, token, state, project, last, block="", top=None, state_first=False):
    """The tensors of a layer in a spelling. top: the place of the norms and the projection, where it is not the layer's."""
    own, top = pieces(), prefix if top is None else top
    weight = own["W"]
    if state_first:
        weight = torch.cat([weight[:, H:], weight[:, :H]], 1)
    names = {token: own["token"], state: own["state"], project: weight}
    found = {f"{top}{name}.weight": each for name, each in names.items()}
    found[f"{(top if block or top != prefix else prefix)}{last}.weight"] = own["last"]
    return found | {f"{prefix}{block}{name}": each for name, each in own["layer"].items()}


DEEPSEEK = ("enorm", "hnorm", "eh_proj", "shared_head.norm")
QWEN = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "norm")
MIMO = ("token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm")


def inkling():
    names = "embed_norm", "hidden_norm", "input_proj", "-"
    own = spelled("model.mtp.layers.0.", *names, "transformer_block.", state_first=True)
    own["model.mtp.chain_norm.weight"] = own.pop("model.mtp.layers.0.-.weight")
    return own


def with_heads():
    heads = ("model.layers.3.embed_tokens.weight", "model.layers.3.shared_head.head.weight")
    return spelled("model.layers.3.", *DEEPSEEK) | {name: torch.zeros(61, H) for name in heads}


def two_layers():
    second = spelled("model.layers.4.", *DEEPSEEK)
    return spelled("model.layers.3.", *DEEPSEEK) | {name: one + 1 for name, one in second.items()}


SPELLINGS = {
    "DeepSeek, GLM": ({"num_nextn_predict_layers": 1}, with_heads),
    "the second layer is left": ({"num_nextn_predict_layers": 2}, two_layers),
    "MiMo": ({"num_nextn_predict_layers": 1}, lambda: spelled("model.mtp_layers.0.", *MIMO, state_first=True)),
    "Qwen": ({"mtp_num_hidden_layers": 1}, lambda: spelled("mtp.layers.0.", *QWEN, top="mtp.")),
    "MiniMax": ({"num_mtp_modules": 1}, lambda: spelled("mtp.layers.0.", *DEEPSEEK)),
    "Inkling": ({"mtp_config": {"num_nextn_predict_layers": 1}}, inkling),
}  # fmt: skip


@pytest.fixture(scope="module")
def module():
    return tiny_hf_model("qwen3")


@pytest.fixture(scope="module")
def base(module, tmp_path_factory):
    """base(config, tensors): the folder of the target with these entries and tensors beside its own."""
    own = tmp_path_factory.mktemp("own")
    module.save_pretrained(own)

    def one(config, tensors):
        folder = tmp_path_factory.mktemp("base")
        told = json.loads((own / "config.json").read_text()) | config
        (folder / "config.json").write_text(json.dumps(told))
        save_file(load_file(own / "model.safetensors") | tensors, folder / "model.safetensors")
        return folder

    return one


@torch.no_grad()
def formula(module, context, count):
    """The laws of ``count`` tokens drafted after a text, each the likeliest, in plain torch over one causal window a token:
    W[norm(e(x_{t+1})); norm(h_t)] -> the layer -> norm -> the target's head, with the layer's own state for h from then on.
    """
    own, config = pieces(), module.config
    block, turn = Qwen3DecoderLayer(config, 0).eval(), Qwen3RotaryEmbedding(config)
    block.load_state_dict(own["layer"])
    embed = module.get_input_embeddings()
    read = module(input_ids=torch.tensor([context]), output_hidden_states=True)
    states, tokens, laws = list(read.hidden_states[-1][0, :-1]), list(context[1:]), []

    def normed(rows, weight):
        return weight * rows * (rows.pow(2).mean(-1, keepdim=True) + config.rms_norm_eps).rsqrt()

    for _ in range(count):
        e, h = embed(torch.tensor(tokens)), torch.stack(states)
        rows = torch.cat([normed(e, own["token"]), normed(h, own["state"])], -1) @ own["W"].T
        mask = torch.full((len(rows), len(rows)), float("-inf")).triu(1)[None, None]
        places = turn(rows[None], torch.arange(len(rows))[None])
        found = block(rows[None], attention_mask=mask, position_embeddings=places)
        found = found[0] if isinstance(found, tuple) else found
        last = normed(found.reshape(len(rows), H)[-1], own["last"])
        laws.append(module.get_output_embeddings()(last).softmax(-1))
        states.append(last)
        tokens.append(int(laws[-1].argmax()))
    return tokens[-count:], torch.stack(laws)


def first_draft(module, folder):
    """The chain of the drafter's first step, and its laws."""
    target = language_model(copy.deepcopy(module), None, "qwen3", lean=False)
    models = Models(target, {"mtp": kind_of("mtp").load(str(folder), target, torch.float32, "cpu")})
    options = {"nodes": DRAFTED, "top_k": 1, "depth": DRAFTED, "stop_below": 0.0}
    tree = next(begun(models, "mtp", PROMPT, **options)).tree
    return tree.tokens, torch.stack([tree.laws[tree.draws[node][0].law] for node in tree.parents])


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_spelling_drafts_what_the_formula_says(name, module, base):
    config, tensors = SPELLINGS[name]
    folder = base(config, tensors())
    assert own_layer(str(folder)) == {"mtp": str(folder)}, "it need not be named"
    tokens, laws = first_draft(module, folder)
    wanted, expected = formula(module, PROMPT, DRAFTED)
    assert tokens == wanted
    torch.testing.assert_close(laws, expected, atol=2e-5, rtol=1e-4)


def test_speculators_layout_is_read_and_written(module, base, tmp_path):
    """What is written opens with its own numbers, to bfloat16."""
    folder = tmp_path / "taken"
    folder.mkdir()
    inner = json.loads((base({}, {}) / "config.json").read_text())
    told = {"speculators_model_type": "mtp", "num_nextn_predict_layers": 1}
    (folder / "config.json").write_text(json.dumps({**told, "transformer_layer_config": inner}))
    save_file(spelled("mtp_layers.0.", *MIMO), folder / "model.safetensors")
    tokens, laws = first_draft(module, folder)
    wanted, expected = formula(module, PROMPT, DRAFTED)
    assert tokens == wanted
    torch.testing.assert_close(laws, expected, atol=2e-5, rtol=1e-4)
    write_mtp(read_mtp(folder, torch.float32, "cpu"), tmp_path / "again", {})
    before, after = (load_file(one / "model.safetensors") for one in (folder, tmp_path / "again"))
    assert before.keys() == after.keys()
    for key, tensor in before.items():
        assert torch.equal(tensor.bfloat16(), after[key])


def changed(change, spelling="Qwen"):
    """Return a function that makes the changed config and tensors: a test calls it, so nothing is made at
    collection."""

    def make():
        config, tensors = dict(SPELLINGS[spelling][0]), SPELLINGS[spelling][1]()
        change(config, tensors)
        return config, tensors

    return make


def also(key, *shape):
    return lambda config, tensors: tensors.update({key: torch.zeros(shape)})


LAYER = "mtp.layers.0."
WRONG = {
    "none": (lambda: ({}, {}), "has no MTP layer"),
    "promised": (lambda: ({"num_mtp_modules": 2}, {}), r"promises 2 MTP layers \(num_mtp_modules\)"),
    "experts": (changed(also(f"{LAYER}mlp.experts.0.up_proj.weight", 4, H)), "experts"),
    "MLA": (changed(also(f"{LAYER}self_attn.kv_a_proj_with_mqa.weight", 4, H)), "MLA"),
    "gated": (changed(also(f"{LAYER}self_attn.q_proj.weight", 128, H)), "is gated"),
    "linear": (changed(also(f"{LAYER}linear_attn.in_proj.weight", 4, H)), "is linear"),
    "state": (changed(also(f"{LAYER}mixer.in_proj.weight", 4, H)), "recurrent state"),
    "DSpark": (changed(also("mtp.markov_head.markov_w1.weight", 4, H)), "DSpark"),
    "turned": (changed(lambda config, _: config.update(partial_rotary_factor=0.5)), "a part of each head"),
    "shape": (changed(also("mtp.fc.weight", H, H)), "has the shape"),
    "norm": (changed(lambda _, tensors: tensors.pop("mtp.norm.weight")), "lack norm.weight"),
    "other": (changed(also(f"{LAYER}sconv.weight", 4)), "sconv.weight"),
    "a number for a matrix": (changed(also(f"{LAYER}self_attn.q_proj.weight")), "has the shape"),
    "a number for the projection": (changed(also("model.mtp_layers.0.input_proj.weight"), "MiMo"), "has the shape"),
    "no projection": (
        changed(lambda _, tensors: tensors.pop("model.mtp_layers.0.input_proj.weight"), "MiMo"),
        "lack fc.weight",
    ),
    "assistant": (lambda: ({"model_type": "gemma4_assistant"}, {}), "reads the target's own cache"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_is_one_sentence(name, base):
    make, words = WRONG[name]
    with pytest.raises(UserError, match=words) as told:
        read_mtp(base(*make()), torch.float32, "cpu")
    assert str(told.value).endswith(".") and "\n" not in str(told.value)


def test_a_folder_that_is_no_model_has_no_layer(tmp_path):
    assert own_layer(str(tmp_path)) == {} and own_layer("owner/name") == {}
    (tmp_path / "config.json").write_text("[" * 100_000)
    assert own_layer(str(tmp_path)) == {}
    with pytest.raises(UserError, match="no MTP layer to open"):
        read_mtp(tmp_path, torch.float32, "cpu")
