"""A stranger's checkpoint is inspected before it is opened, and what may not be opened is one sentence."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPTJConfig, GPTNeoConfig, LlamaConfig, MixtralConfig

from engine.__main__ import main
from engine.errors import UserError
from engine.parts import size_limits as admission
from engine.parts.hub import is_hub_name
from engine.parts.inspection import inspect
from engine.parts.opening import load_language_model
from engine.parts.size_limits import Allowed, admit
from tests.engine import checkpoints as spoil
from tests.engine.checkpoints import (
    drop,
    generation,
    half,
    headless,
    index,
    instead,
    retell,
    rewrite,
)
from tests.engine.tiny import CONFIGS, tiny_hf_model
from tests.pairs import SIZES, make, tokenizer

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
    "pickled": spoil.only_pickled,
    "cut off": spoil.cut,
    "empty weights": lambda f: (f / "model.safetensors").write_bytes(b""),
    "a header of all memory": lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 64),
    "a tensor less": lambda f: drop(f, LAYER),
    "a giant shape": lambda f: retell(f, lambda h: h[LAYER].update(shape=[1 << 30, 1 << 30])),
    "offsets beyond": lambda f: retell(f, lambda h: h[LAYER].update(data_offsets=[0, 1 << 60])),
    "a shape in words": lambda f: retell(f, lambda h: h[LAYER].update(shape=["a"])),
    "another dtype": lambda f: retell(f, lambda h: h[LAYER].update(dtype="X")),
    "no head": lambda f: drop(f, "lm_head.weight"),
    "a base model": spoil.headless,
    "a layer that is not there": lambda f: rewrite(f, num_hidden_layers=3, layer_types=None),
    "an index that leads out": spoil.outside,
    "an index that leads to the root": lambda f: index(f, "/etc/passwd"),
    "an index into a folder": lambda f: index(f, "a/zz.safetensors"),
    "an index to nothing": lambda f: index(f, "aa.safetensors"),
    "an index of numbers": lambda f: index(f, 3),
    "an index to a pickle": lambda f: index(f, "config.json"),
    "an index of nothing": lambda f: (index(f, ""), (f / "model.safetensors.index.json").write_text("{}")),
    "an index cut off": lambda f: (index(f, "zz.safetensors"), half(f, "model.safetensors.index.json")),
    "an index that is a folder": lambda f: (index(f, "a"), instead(f, "model.safetensors.index.json")),
    "weights of its own choice": lambda f: rewrite(f, transformers_weights="config.safetensors"),
    "an index of its own choice": spoil.own_index,
    "weights under another name": lambda f: rewrite(f, attribute_map={"a": "transformers_weights"}, a="model.safetensors"),
    "layers under another name": lambda f: rewrite(f, attribute_map={"a": "num_hidden_layers"}),
    "a part of a training's state": lambda f: shutil.copy(f / "model.safetensors", f / "shard-00001-model-00001-of-00001.safetensors"),
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
    "a link out": spoil.link_out,
    "a pipe": spoil.pipe,
    "a link out of a folder in it": spoil.deep_link,
    "a link to a folder with a link out": spoil.linked_folder,
    "links in a circle": spoil.circle,
}  # fmt: skip
LINKS = {
    "a link out",
    "a link out of a folder in it",
    "a link to a folder with a link out",
    "a pipe",
    "links in a circle",
}
"""Nothing that the owner of the machine may not do on the command line."""
BEFORE = {"experts without end": "asks for too much: experts in each layer"}
"""What is refused before a module is built, which alone would take long: the end of the sentence."""


@pytest.mark.parametrize("way", SPOILED)
def test_what_may_not_be_opened_is_one_sentence(folder, way, capsys):
    """On the command line, too."""
    SPOILED[way](folder)
    with pytest.raises(UserError) as told:
        inspect(folder)
    sentence = str(told.value)
    assert sentence.endswith(".") and "\n" not in sentence and str(folder.parent) not in sentence
    assert sentence.endswith(f"{BEFORE.get(way, '')}.")
    if way not in LINKS:
        command = ["run", "--target", str(folder), "--drafter", "none", "--prompt", "Once"]
        assert main([*command, "--max-new-tokens", "2"]) == 2
        assert capsys.readouterr().err.count("\n") == 1


TOKENIZER = {
    "cut off": lambda f: half(f, "tokenizer.json"),
    "empty": lambda f: (f / "tokenizer.json").write_text(""),
    "a folder": lambda f: instead(f, "tokenizer.json"),
    "a list": lambda f: (f / "tokenizer.json").write_text("[]"),
    "no vocabulary": lambda f: (f / "tokenizer.json").write_text('{"model": {"type": "BPE"}}'),
    "another class": lambda f: (f / "tokenizer_config.json").write_text('{"tokenizer_class": "Nothing"}'),
    "a config that is a folder": lambda f: instead(f, "tokenizer_config.json"),
    "a config of numbers": lambda f: (f / "tokenizer_config.json").write_text('{"eos_token": 3, "model_max_length": "a"}'),
    "missing": lambda f: (f / "tokenizer.json").unlink(),
}  # fmt: skip
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
    "a window of nothing": {"use_sliding_window": True, "sliding_window": 0, "max_window_layers": 0},
    "quantised": {"quantization_config": {"quant_method": "none such"}},
    "pruned": {"pruned_heads": {"0": [0, 1, 2, 3]}},
    "an attention of its own": {"_attn_implementation": "none such"},
    "no cache": {"use_cache": False},
    "a window of none": {"use_sliding_window": True, "sliding_window": None, "max_window_layers": 0},
    "windows of none": {"layer_types": ["sliding_attention"] * 2, "sliding_window": None},
    "an encoder": {"is_encoder_decoder": True},
    "no decoder": {"is_decoder": False},
    "tied, with a head": {"tie_word_embeddings": True},
}  # fmt: skip
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
def test_no_checkpoint_gives_a_traceback(folder, way, capsys, request):
    """It is used, or refused with one line. What is compiled depends on the configuration alone."""
    if not way.startswith("config: "):
        request.getfixturevalue("uncompiled")
    FUZZED[way](folder)
    command = ["run", "--target", str(folder), "--drafter", "none", "--prompt", "Once"]
    code = main([*command, "--max-new-tokens", "3", "--own-sampling"])
    assert code == 0 or (code == 2 and capsys.readouterr().err.count("error: ") == 1)


@pytest.mark.parametrize("way", ["cut off", "empty", "a list", "no vocabulary"])
def test_no_message_names_a_folder_of_the_host(folder, way, monkeypatch):
    monkeypatch.chdir(folder.parent.parent)
    TOKENIZER[way](folder)
    with pytest.raises(UserError) as told:
        load_language_model(str(folder))
    assert str(folder.parent) not in str(told.value)


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


def test_a_model_from_the_hub_is_named_as_people_know_it(whole, tmp_path, monkeypatch, uncompiled):
    """Its folder in the cache is named by a number."""
    cache = tmp_path / "models--org--small" / "snapshots" / ("ab" * 20)
    shutil.copytree(whole, cache)
    assert inspect(cache).name == "org/small" and load_language_model(str(cache)).name == "small"
    headless(cache)
    monkeypatch.setattr(admission, "download", lambda *_: cache)
    with pytest.raises(UserError, match=r"^The weights of org/small lack lm_head.weight") as told:
        admit("org/small", Allowed(("*",)))
    assert str(tmp_path) not in str(told.value)


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
