"""A stranger's checkpoint is inspected before it is opened, and what may not be opened is one sentence."""

import json
import shutil

import pytest

from engine.__main__ import main
from engine.errors import UserError
from engine.parts.inspection import inspect
from engine.parts.opening import load_language_model
from tests.engine.checkpoints import (
    circle,
    cut,
    deep_link,
    drop,
    generation,
    half,
    headless,
    index,
    instead,
    link_out,
    linked_folder,
    only_pickled,
    outside,
    own_index,
    pipe,
    retell,
    rewrite,
)

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


@pytest.mark.parametrize("way", ["cut off", "empty", "a list", "no vocabulary"])
def test_no_message_names_a_folder_of_the_host(folder, way, monkeypatch):
    monkeypatch.chdir(folder.parent.parent)
    TOKENIZER[way](folder)
    with pytest.raises(UserError) as told:
        load_language_model(str(folder))
    assert str(folder.parent) not in str(told.value)
