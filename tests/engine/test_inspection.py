"""A stranger's checkpoint is inspected before it is opened."""

import json
import os
import shutil
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPTJConfig, GPTNeoConfig, LlamaConfig, MixtralConfig

from engine.__main__ import main
from engine.errors import UserError
from engine.opening import load_language_model
from engine.parts import admission
from engine.parts.admission import Allowed, admit
from engine.parts.hub import is_hub_name
from engine.parts.inspection import inspect
from tests.engine.tiny import CONFIGS, tiny_hf_model
from tests.pairs import SIZES, make, strangers_pair, tokenizer


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return strangers_pair(tmp_path_factory.mktemp("pair"))[0]


@pytest.fixture
def folder(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "models" / "m"))


def rewrite(folder: Path, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def retell(folder: Path, change) -> None:
    """Rewrite the header of the weights."""
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    change(header)
    new = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(new)) + new + raw[8 + length :])


def drop(folder, name):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors[name]
    save_file(tensors, path)


def only_pickled(folder):
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def link_out(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to("/etc/passwd")


def pipe(folder):
    os.mkfifo(folder / "pipe.json")


def headless(folder):
    """A base model's file: names without the prefix, and no head."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors["lm_head.weight"]
    save_file({name.removeprefix("model."): one for name, one in tensors.items()}, path)


def index(folder, place):
    """An index over the same weights, which names another place for them. A file beside it has the promised tensors."""
    (folder / "model.safetensors").rename(folder / "zz.safetensors")
    names = load_file(folder / "zz.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, place)})
    )


def outside(folder):
    index(folder, "../../outside/private.safetensors")
    (folder.parent.parent / "outside").mkdir()
    shutil.copy(folder / "zz.safetensors", folder.parent.parent / "outside" / "private.safetensors")


def own_index(folder):
    """The configuration names an index that leads out, beside weights as promised."""
    shutil.copy(folder / "model.safetensors", folder / "kept.safetensors")
    outside(folder)
    (folder / "kept.safetensors").rename(folder / "model.safetensors")
    (folder / "model.safetensors.index.json").rename(folder / "own.safetensors.index.json")
    rewrite(folder, transformers_weights="own.safetensors.index.json")


def deep_link(folder):
    """Chat templates lie one folder deeper."""
    secret = folder.parent.parent / "secret.jinja"
    secret.write_text("secret")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "a.jinja").symlink_to(secret)


def linked_folder(folder):
    """A link to a folder that lies in the checkpoint, from where a link leads out."""
    (folder / "a").mkdir()
    (folder / "a" / "out").symlink_to("/etc")
    (folder / "b").symlink_to(folder / "a")


def circle(folder):
    (folder / "a.json").symlink_to(folder / "b.json")
    (folder / "b.json").symlink_to(folder / "a.json")


def instead(folder, name):
    """A directory in place of a file."""
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()


def half(folder, name):
    raw = (folder / name).read_bytes()
    (folder / name).write_bytes(raw[: len(raw) // 2])


def generation(folder, text):
    (folder / "generation_config.json").write_text(text)


LAYER = "model.layers.0.mlp.up_proj.weight"
SPOILED = {
    "a giant width": lambda f: rewrite(f, hidden_size=1 << 40),
    "a wide width": lambda f: rewrite(f, hidden_size=1 << 20),
    "a giant vocabulary": lambda f: rewrite(f, vocab_size=1 << 23),
    "many layers": lambda f: rewrite(f, num_hidden_layers=10**9),
    "a layer more": lambda f: rewrite(f, num_hidden_layers=3, layer_types=["full_attention"] * 3),
    "no width": lambda f: rewrite(f, hidden_size=0),
    "a negative width": lambda f: rewrite(f, hidden_size=-32),
    "a width in words": lambda f: rewrite(f, hidden_size="wide"),
    "infinity": lambda f: rewrite(f, rms_norm_eps=float("inf")),
    "nan": lambda f: rewrite(f, initializer_range=float("nan")),
    "a long list": lambda f: rewrite(f, layer_types=["full_attention"] * 10**5),
    "deep": lambda f: rewrite(f, a=json.loads("[" * 50 + "1" + "]" * 50)),
    "code": lambda f: rewrite(f, model_type="own", auto_map={"AutoModelForCausalLM": "evil.Model"}),
    "another kind": lambda f: rewrite(f, model_type="t5"),
    "no kind": lambda f: rewrite(f, model_type="no such thing"),
    "a list for a config": lambda f: (f / "config.json").write_text("[1]"),
    "a config cut off": lambda f: (f / "config.json").write_text('{"model_type": "qwen2"'),
    "a deep config": lambda f: (f / "config.json").write_text("[" * 100_000),
    "a huge config": lambda f: (f / "config.json").write_text(" " * (2 << 20) + "{}"),
    "no config": lambda f: (f / "config.json").unlink(),
    "pickled": only_pickled,
    "cut off": cut,
    "empty weights": lambda f: (f / "model.safetensors").write_bytes(b""),
    "a header of all memory": lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 64),
    "a tensor less": lambda f: drop(f, LAYER),
    "a giant shape": lambda f: retell(f, lambda h: h[LAYER].update(shape=[1 << 30, 1 << 30])),
    "offsets beyond": lambda f: retell(f, lambda h: h[LAYER].update(data_offsets=[0, 1 << 60])),
    "a shape in words": lambda f: retell(f, lambda h: h[LAYER].update(shape=["a"])),
    "another dtype": lambda f: retell(f, lambda h: h[LAYER].update(dtype="X")),
    "no head": lambda f: drop(f, "lm_head.weight"),
    "a base model": headless,
    "a layer that is not there": lambda f: rewrite(f, num_hidden_layers=3, layer_types=None),
    "an index that leads out": outside,
    "an index that leads to the root": lambda f: index(f, "/etc/passwd"),
    "an index into a folder": lambda f: index(f, "a/zz.safetensors"),
    "an index to nothing": lambda f: index(f, "aa.safetensors"),
    "an index of numbers": lambda f: index(f, 3),
    "an index to a pickle": lambda f: index(f, "config.json"),
    "an index of nothing": lambda f: (
        index(f, ""),
        (f / "model.safetensors.index.json").write_text("{}"),
    ),
    "an index cut off": lambda f: (
        index(f, "zz.safetensors"),
        half(f, "model.safetensors.index.json"),
    ),
    "an index that is a folder": lambda f: (
        index(f, "a"),
        instead(f, "model.safetensors.index.json"),
    ),
    "weights of its own choice": lambda f: rewrite(f, transformers_weights="config.safetensors"),
    "an index of its own choice": own_index,
    "weights under another name": lambda f: rewrite(
        f, attribute_map={"a": "transformers_weights"}, a="model.safetensors"
    ),
    "layers under another name": lambda f: rewrite(f, attribute_map={"a": "num_hidden_layers"}),
    "a part of a training's state": lambda f: shutil.copy(
        f / "model.safetensors", f / "shard-00001-model-00001-of-00001.safetensors"
    ),
    "weights that are a folder": lambda f: instead(f, "model.safetensors"),
    "a config that is a folder": lambda f: instead(f, "config.json"),
    "an empty config": lambda f: (f / "config.json").write_text(""),
    "a generation config that is a folder": lambda f: instead(f, "generation_config.json"),
    "a generation config cut off": lambda f: generation(f, '{"eos_'),
    "an empty generation config": lambda f: generation(f, ""),
    "a list for a generation config": lambda f: generation(f, "[]"),
    "a generation config out of range": lambda f: generation(f, '{"max_new_tokens": -3}'),
    "experts without end": lambda f: rewrite(f, num_hidden_layers=500, num_experts=1000),
    "an adapter": lambda f: (f / "adapter_config.json").write_text("{}"),
    "a link out": link_out,
    "a pipe": pipe,
    "a link out of a folder in it": deep_link,
    "a link to a folder with a link out": linked_folder,
    "links in a circle": circle,
}
LINKS = (
    "a link out",
    "a link out of a folder in it",
    "a link to a folder with a link out",
    "a pipe",
    "links in a circle",
)
"""Nothing that the owner of the machine may not do on the command line."""


@pytest.mark.parametrize("way", SPOILED)
def test_what_may_not_be_opened_is_one_sentence(folder, way):
    SPOILED[way](folder)
    with pytest.raises(UserError) as told:
        inspect(folder)
    sentence = str(told.value)
    assert sentence.endswith(".") and "\n" not in sentence and str(folder.parent) not in sentence


@pytest.mark.parametrize("way", [one for one in SPOILED if one not in LINKS])
def test_the_command_line_refuses_the_same(folder, way, capsys):
    SPOILED[way](folder)
    command = ["run", "--target", str(folder), "--drafter", "none", "--prompt", "Once"]
    assert main([*command, "--max-new-tokens", "2"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


TOKENIZER = {
    "cut off": lambda f: half(f, "tokenizer.json"),
    "empty": lambda f: (f / "tokenizer.json").write_text(""),
    "a folder": lambda f: instead(f, "tokenizer.json"),
    "a list": lambda f: (f / "tokenizer.json").write_text("[]"),
    "no vocabulary": lambda f: (f / "tokenizer.json").write_text('{"model": {"type": "BPE"}}'),
    "another class": lambda f: (f / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "Nothing"}'
    ),
    "a config that is a folder": lambda f: instead(f, "tokenizer_config.json"),
    "a config of numbers": lambda f: (f / "tokenizer_config.json").write_text(
        '{"eos_token": 3, "model_max_length": "a"}'
    ),
    "missing": lambda f: (f / "tokenizer.json").unlink(),
}
CONTRADICTIONS = {
    "one wide head": {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 32},
    "narrow heads": {"num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 1},
    "more keys than queries": {"num_attention_heads": 2, "num_key_value_heads": 4},
    "no context": {"max_position_embeddings": 0},
    "a negative context": {"max_position_embeddings": -5},
    "a negative epsilon": {"rms_norm_eps": -1.0},
    "no layers": {"num_hidden_layers": 0, "layer_types": []},
    "an end beyond": {"eos_token_id": 10**6, "bos_token_id": -3},
    "a padding beyond": {"pad_token_id": 10**6},
    "another activation": {"hidden_act": "none such"},
    "an activation of another kind": {"hidden_act": 3},
    "angles in words": {"rope_parameters": {"rope_type": "none such", "rope_theta": "a"}},
    "angles of zero": {"rope_parameters": {"rope_type": "default", "rope_theta": 0.0}},
    "a list of angles": {"rope_parameters": []},
    "a dtype of none": {"dtype": "none such"},
    "a dtype of whole numbers": {"dtype": "int8"},
    "another layer type": {"layer_types": ["none such", "full_attention"]},
    "a window of nothing": {
        "use_sliding_window": True,
        "sliding_window": 0,
        "max_window_layers": 0,
    },
    "quantised": {"quantization_config": {"quant_method": "none such"}},
    "pruned": {"pruned_heads": {"0": [0, 1, 2, 3]}},
    "an attention of its own": {"_attn_implementation": "none such"},
    "no cache": {"use_cache": False},
    "a window of none": {
        "use_sliding_window": True,
        "sliding_window": None,
        "max_window_layers": 0,
    },
    "windows of none": {"layer_types": ["sliding_attention"] * 2, "sliding_window": None},
    "an encoder": {"is_encoder_decoder": True},
    "no decoder": {"is_decoder": False},
    "tied, with a head": {"tie_word_embeddings": True},
}
GENERATION = {
    "ends in words": {"eos_token_id": "a"},
    "ends beyond": {"eos_token_id": [10**9], "forced_eos_token_id": 10**9},
    "a negative length": {"min_length": -3, "no_repeat_ngram_size": -1},
    "words for numbers": {"no_repeat_ngram_size": "a", "min_new_tokens": "b"},
    "bad words beyond": {"bad_words_ids": [[10**9]]},
    "bad words of none": {"bad_words_ids": [[]]},
    "bad words in words": {"bad_words_ids": "abc"},
    "everything suppressed": {"suppress_tokens": list(range(4200))},
    "suppressed in words": {"suppress_tokens": "abc", "begin_suppress_tokens": 3},
    "stop strings of numbers": {"stop_strings": [3]},
    "an empty stop string": {"stop_strings": ""},
    "heat in words": {"do_sample": True, "temperature": "hot"},
    "cuts beyond": {"do_sample": True, "min_p": 7.0},
    "cuts in words": {"do_sample": True, "typical_p": "a"},
    "a share beyond": {"do_sample": True, "top_p": 3.0, "top_k": -5},
    "sampling in words": {"do_sample": "yes"},
    "a watermark of none": {"watermarking_config": {"a": 3}},
}
FUZZED = {f"tokenizer: {name}": way for name, way in TOKENIZER.items()}
FUZZED |= {f"config: {k}": lambda f, v=v: rewrite(f, **v) for k, v in CONTRADICTIONS.items()}
FUZZED |= {
    f"generation: {k}": lambda f, v=v: generation(f, json.dumps(v)) for k, v in GENERATION.items()
}


@pytest.mark.parametrize("way", FUZZED)
def test_no_checkpoint_gives_a_traceback(folder, way, capsys):
    """It is used, or refused with one line."""
    FUZZED[way](folder)
    command = ["run", "--target", str(folder), "--drafter", "none", "--prompt", "Once"]
    code = main([*command, "--max-new-tokens", "3", "--own-sampling"])
    assert code == 0 or (code == 2 and capsys.readouterr().err.count("error: ") == 1)


def saved(folder: Path, module) -> Path:
    module.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


MANY = {"num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 61}
WHOLE = {
    **{name: lambda name=name: tiny_hf_model(name) for name in CONFIGS},
    "tied": lambda: tiny_hf_model("llama", tie_word_embeddings=True),
    "experts in many tensors": lambda: AutoModelForCausalLM.from_config(
        MixtralConfig(**{**SIZES, **MANY})
    ),
    "layers of two kinds": lambda: AutoModelForCausalLM.from_config(
        GPTNeoConfig(vocab_size=61, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]])
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_what_transformers_saves_lacks_nothing(tmp_path, kind):
    module = WHOLE[kind]()
    found = inspect(saved(tmp_path / "m", module))
    assert found.architecture == type(module).__name__
    assert found.parameters == sum(one.numel() for one in module.parameters())


def test_a_tied_head_may_lie_under_either_name(tmp_path):
    config = LlamaConfig(vocab_size=4160, tie_word_embeddings=True, eos_token_id=None, **SIZES)
    folder = make(tmp_path / "m", config, 1)
    path, one, other = folder / "model.safetensors", "model.embed_tokens.weight", "lm_head.weight"
    tensors = load_file(path)
    assert other not in tensors
    save_file({other if name == one else name: each for name, each in tensors.items()}, path)
    assert inspect(folder).parameters == sum(each.numel() for each in tensors.values())
    drop(folder, other)
    with pytest.raises(UserError, match="lack"):
        inspect(folder)


def test_a_base_model_with_a_tied_head_is_whole(tmp_path):
    folder = saved(tmp_path / "m", tiny_hf_model("gpt2").transformer)
    assert inspect(folder).architecture == "GPT2LMHeadModel"


def test_a_file_in_pieces_is_read_as_its_index_says(folder):
    index(folder, "zz.safetensors")
    whole = inspect(folder)
    shutil.copy(folder / "zz.safetensors", folder / "unnamed.safetensors")
    assert inspect(folder) == whole


def test_tables_that_no_file_holds_are_counted(tmp_path):
    places = 1 << 12

    def config(count):
        return GPTJConfig(
            vocab_size=4160, n_embd=16, n_head=2, n_layer=3, rotary_dim=8, n_positions=count
        )

    folder = make(tmp_path / "m", config(places), 1)
    small = inspect(folder)
    parameters = sum(each.numel() for each in load_file(folder / "model.safetensors").values())
    assert small.nbytes >= 4 * parameters + 3 * places * 8 * 4, (
        "a table of 8 numbers a place in each layer"
    )
    rewrite(folder, n_positions=1 << 24)
    assert inspect(folder).nbytes >= 3 * (1 << 24) * 8 * 4
    with pytest.raises(UserError, match="needs 1.6. GB of memory"):
        admit(str(folder), Allowed((str(tmp_path),), most_bytes=1 << 30))


def test_a_model_from_the_hub_is_named_as_people_know_it(whole, tmp_path, monkeypatch):
    """Its folder in the cache is named by a number."""
    cache = tmp_path / "models--org--small" / "snapshots" / ("ab" * 20)
    shutil.copytree(whole, cache)
    assert inspect(cache).name == "org/small" and load_language_model(str(cache)).name == "small"
    headless(cache)
    monkeypatch.setattr(admission, "download", lambda *_: cache)
    with pytest.raises(UserError, match=r"^The weights of org/small lack lm_head.weight") as told:
        admit("org/small", Allowed(("*",)))
    assert str(tmp_path) not in str(told.value)


def test_no_message_names_a_folder_of_the_host(folder, monkeypatch):
    monkeypatch.chdir(folder.parent.parent)
    for spoil in TOKENIZER.values():
        shutil.rmtree(folder / "tokenizer.json", ignore_errors=True)
        spoil(folder)
        with pytest.raises(UserError) as told:
            load_language_model(str(folder))
        assert str(folder.parent) not in str(told.value)
        break


def test_a_whole_one_is_measured(whole):
    found = inspect(whole)
    assert found.architecture == "Qwen2ForCausalLM"
    tensors = load_file(whole / "model.safetensors")
    assert found.parameters == sum(tensor.numel() for tensor in tensors.values())


def test_only_what_the_host_allows_is_looked_at(folder, tmp_path, monkeypatch):
    (tmp_path / "secret").mkdir()
    shutil.copytree(folder, tmp_path / "secret" / "m")
    (folder.parent / "way-out").symlink_to(tmp_path / "secret" / "m")
    allowed, looked = Allowed((str(folder.parent), "org/*")), []
    assert admit(str(folder), allowed).folder == folder

    def look(*where):
        looked.append(where)
        raise UserError("seen.")

    monkeypatch.setattr(admission, "inspect", look)
    monkeypatch.setattr(admission, "download", look)
    wishes = [
        str(tmp_path / "secret" / "m"), str(folder.parent / "way-out"), str(folder / ".." / ".." / "secret" / "m"),
        "other/model", "../m", "org/../../m", "", " ", "a" * 400, "org/\0", "file:///etc", "~/m", "org", 3, None,
        "https://evil.example/m", "org/m/../..", str(folder.parent) + "-beside/m",
    ]  # fmt: skip
    for wish in wishes:
        with pytest.raises(UserError):
            admit(wish, allowed)
    assert looked == []
    with pytest.raises(UserError, match="seen"):
        admit("org/model", allowed)
    with pytest.raises(UserError, match="does not open"):
        admit(str(folder), Allowed())


def test_the_size_is_held_against_free_memory_first(folder, monkeypatch):
    monkeypatch.setattr(admission, "free_bytes", lambda: 100_000)
    with pytest.raises(UserError, match="GB are free"):
        admit(str(folder), Allowed((str(folder.parent),)))


def test_names_on_the_hub():
    assert is_hub_name("org/model-1.5B") and not is_hub_name("org/a..b") and not is_hub_name("a")
