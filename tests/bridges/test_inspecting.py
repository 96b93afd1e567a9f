"""What a checkpoint is, whether it fits a target, its traps by name; and a hostile one is one sentence."""

import json
import shutil
import struct
from pathlib import Path

import pytest
import torch

from engine.__main__ import main
from engine.bridges.drafter_kinds import KINDS
from engine.bridges.inspecting import inspect_drafter
from engine.errors import UserError
from presets import family
from tests.engine.eagle_cells import DRAFT, LAYOUTS, H, V, checkpoint, peagle

BLOCK = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "dflash",
    "hidden_size": H,
    "vocab_size": V,
    "block_size": 8,
    "dflash_config": {"target_layer_ids": [1, 4], "mask_token_id": 3},
}
CAUSAL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": H,
    "vocab_size": V,
    "num_hidden_layers": 8,
}
ONE = {"a.weight": (2, 2)}
KIND = {
    "causal": (CAUSAL, ONE),
    "eagle": LAYOUTS["eagle"](),
    "eagle3": LAYOUTS["eagle3"](),
    "eagle4": ({"architectures": ["LlamaForCausalLMEagle4"]}, ONE),
    "peagle": peagle(),
    "pard": ({**CAUSAL, "pard_token": 3}, ONE),
    "dflash": (BLOCK, ONE),
    "dflash2": (BLOCK, {"candidate_selector.hidden_projection.weight": (2, 2)}),
    "dspark": ({**BLOCK, "markov_rank": 256}, ONE),
    "domino": ({**BLOCK, "dflash_config": {"projector_type": "domino"}}, ONE),
    "lilicorr": ({**BLOCK, "lilicorr_enabled": True}, ONE),
    "xpress": ({"speculators_model_type": "xpress"}, ONE),
    "mtp": ({"speculators_model_type": "mtp", "num_nextn_predict_layers": 1}, ONE),
    "medusa": (
        {"medusa_num_heads": 2},
        {"0.0.linear.weight": (H, H), "0.0.linear.bias": (H,), "0.1.weight": (V, H)},
    ),
    "hydra": ({}, {"hydra_mlp.0.0.linear.weight": (H, 2 * H)}),
    "mlp_speculator": ({"architectures": ["MLPSpeculatorPreTrainedModel"]}, ONE),
    "gemma4_assistant": ({"architectures": ["Gemma4AssistantForCausalLM"]}, ONE),
    "part": (
        {"architectures": ["FalconDraftModel"], "draftscope_target": "a"},
        {"fc.weight": (2, 2), "layers.0.a": (2,)},
    ),
    "other": ({"speculators_model_type": "none such"}, ONE),
}


def made(folder, config, shapes) -> str:
    return str(
        checkpoint(folder, config, {name: torch.zeros(shape) for name, shape in shapes.items()})
    )


@pytest.fixture
def target(tmp_path):
    return made(tmp_path / "target", CAUSAL, ONE)


@pytest.mark.parametrize("kind", KIND)
def test_a_kind_is_known_by_its_files(kind, tmp_path):
    found = inspect_drafter(made(tmp_path / "d", *KIND[kind]))
    assert found.kind == kind
    assert found.lines()[0].startswith(f"d is {KINDS[kind].title}.")


def test_every_kind_is_told_apart(tmp_path):
    (tmp_path / "lora").mkdir()
    (tmp_path / "lora" / "adapter_config.json").write_text("{}")
    assert inspect_drafter(str(tmp_path / "lora")).kind == "adapter"
    assert {*KIND, "adapter"} == KINDS.keys()


def speculators(**changes):
    config, shapes = LAYOUTS["speculators"]()
    return {**config, **changes}, shapes


def without(key):
    config, shapes = speculators()
    return {name: value for name, value in config.items() if name != key}, shapes


TABLES = {"d2t": (DRAFT,), "t2d": (V,)}
TRAPS = {
    "norm_before_residual is missing": (without("norm_before_residual"), "norm_before_residual"),
    "SGLang's name of EAGLE": (
        (
            {**LAYOUTS["eagle"]()[0], "architectures": ["LlamaForCausalLMEagle"]},
            LAYOUTS["eagle"]()[1],
        ),
        "architectures",
    ),
    "DFlash from its anchor": ((BLOCK | {"sample_from_anchor": True}, ONE), "sample_from_anchor"),
    "P-EAGLE with the norm": (
        speculators(speculators_model_type="peagle", mask_token_id=3),
        "norm_before_residual",
    ),
    "offsets": ((speculators()[0], {**speculators()[1], **TABLES}), "d2t"),
    "layers counted as in vLLM": (speculators(), "aux layer ids"),
    "layers counted as in SGLang": (
        (
            {
                **LAYOUTS["eagle3"]()[0],
                "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 5]},
            },
            ONE,
        ),
        "aux layer ids",
    ),
    "no layers named": (LAYOUTS["eagle3"](), "aux layer ids"),
    "block layers": (
        ({**BLOCK, "dflash_config": {"aux_hidden_state_layer_ids": [2], "mask_token_id": 3}}, ONE),
        "aux layer ids",
    ),
    "a block": ((BLOCK, ONE), "block size"),
    "a type that transformers lacks": ((BLOCK, ONE), "model_type"),
    "DSpark without its anchor": (
        ({**BLOCK, "speculators_model_type": "dspark"}, ONE),
        "sample_from_anchor",
    ),
    "a gated Markov head": (
        ({**BLOCK, "markov_rank": 8, "markov_head_type": "gated"}, ONE),
        "markov_head_type",
    ),
    "DFlash2 with convolutions": (
        (BLOCK, {"layers.0.mlp_conv.base_kernel": (2, 2, 2), **KIND["dflash2"][1]}),
        "convolutions",
    ),
    "MTP of DeepSeek": (({**CAUSAL, "num_nextn_predict_layers": 1}, ONE), "MTP layers"),
    "MTP of Qwen": (({**CAUSAL, "text_config": {"mtp_num_hidden_layers": 1}}, ONE), "MTP layers"),
    "MTP of MiniMax": (({**CAUSAL, "num_mtp_modules": 3}, ONE), "MTP layers"),
    "MTP of Inkling": (
        ({**CAUSAL, "mtp_config": {"num_nextn_predict_layers": 2}}, ONE),
        "MTP layers",
    ),
    "MTP without weights": (({**CAUSAL, "num_nextn_predict_layers": 1}, ONE), "MTP weights"),
}
WRONG = {
    "tokens without a table": (LAYOUTS["eagle3"](), "d2t"),
    "a table of another size": (
        (speculators()[0], {**speculators()[1], **TABLES, "d2t": (7,)}),
        "d2t",
    ),
    "a mask of another size": (
        (speculators()[0], {**speculators()[1], **TABLES, "t2d": (7,)}),
        "t2d",
    ),
    "two norms": (speculators(norm_before_fc=True, fc_norm=True), "fc_norm"),
    "no mask": ((BLOCK | {"dflash_config": {"target_layer_ids": [1]}}, ONE), "mask_token_id"),
    "no layers": ((BLOCK | {"dflash_config": {"mask_token_id": 3}}, ONE), "aux layer ids"),
    "two MTP layers": (
        ({"speculators_model_type": "mtp", "num_nextn_predict_layers": 2}, ONE),
        "MTP layers",
    ),
}


@pytest.mark.parametrize("case", [*TRAPS, *WRONG])
def test_a_trap_is_named(case, tmp_path):
    files, name = (TRAPS | WRONG)[case]
    found = inspect_drafter(made(tmp_path / "d", *files))
    assert any(trap.name == name and trap.wrong == (case in WRONG) for trap in found.traps)


def test_what_all_engines_read_alike_is_no_trap(tmp_path):
    found = inspect_drafter(made(tmp_path / "authors", *LAYOUTS["eagle3"]()))
    assert "norm_before_residual" not in [trap.name for trap in found.traps]
    found = inspect_drafter(made(tmp_path / "dense", {**BLOCK, "markov_rank": 8}, ONE))
    assert [trap.sentence for trap in found.traps if trap.name == "block size"] == [
        "A block of 8 drafts 8 tokens, the number to give as K."
    ]


def test_mtp_weights_that_are_there_are_seen(tmp_path):
    config = {**CAUSAL, "num_nextn_predict_layers": 1}
    for place, name in enumerate(("mtp.fc.weight", "model.layers.8.eh_proj.weight")):
        found = inspect_drafter(made(tmp_path / str(place), config, {name: (2, 2)}))
        assert not [trap for trap in found.traps if trap.name == "MTP weights"]


def test_pickled_weights_are_not_opened(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CAUSAL))
    (tmp_path / "pytorch_model.bin").write_bytes(b"would run if it were opened")
    (trap, *_) = inspect_drafter(str(tmp_path)).traps
    assert trap.name == "pickled weights" and trap.wrong


UNFIT = {
    "another width": (LAYOUTS["eagle"](), {"hidden_size": 64}, "hidden size"),
    "another vocabulary": ((CAUSAL, ONE), {"vocab_size": 99}, "vocabularies"),
    "fewer layers": (speculators(), {"num_hidden_layers": 4}, "aux layer ids"),
    "fewer layers than a block reads": ((BLOCK, ONE), {"num_hidden_layers": 2}, "aux layer ids"),
    "heads of another width": (KIND["medusa"], {"hidden_size": 64}, "hidden size"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_does_not_fit_is_named(case, tmp_path, target):
    files, changes, name = UNFIT[case]
    drafter = made(tmp_path / "d", *files)
    other = made(tmp_path / "other", CAUSAL | changes, ONE)
    assert inspect_drafter(drafter, other).fits is False
    assert name in [trap.name for trap in inspect_drafter(drafter, other).traps if trap.wrong]
    assert name not in [trap.name for trap in inspect_drafter(drafter, target).traps if trap.wrong]


def test_the_embedded_parts_fit_their_target(tmp_path, capsys):
    models = family()
    for part in ("draft", "diffusion", "eagle", "medusa", "hydra"):
        assert inspect_drafter(models.parts[part], models.target).fits
    assert main(["inspect", models.parts["eagle"], "--target", models.target]) == 0
    assert "EAGLE-1 or EAGLE-2" in capsys.readouterr().out
    assert main(["inspect", models.parts["omnidraft"], "--target", models.target]) == 1
    assert "different tokens" in capsys.readouterr().out


def test_a_padded_vocabulary_is_a_warning(tmp_path):
    models = family()
    copy = Path(shutil.copytree(models.parts["draft"], tmp_path / "copy"))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(
        json.dumps({**config, "vocab_size": config["vocab_size"] + 64})
    )
    found = inspect_drafter(str(copy), models.target)
    assert found.fits and [trap.name for trap in found.traps] == ["vocabularies"]


def written(name, content):
    return lambda folder: (folder / name).write_bytes(
        content.encode() if isinstance(content, str) else content
    )


HOSTILE = {
    "no config": lambda folder: (folder / "config.json").unlink(),
    "a config cut off": written("config.json", '{"a": '),
    "a list for a config": written("config.json", "[1]"),
    "a deep config": written("config.json", "[" * 100_000),
    "bytes for a config": written("config.json", b"\xff\xfe"),
    "a number of many digits": written("config.json", '{"vocab_size": ' + "9" * 5000 + "}"),
    "empty weights": written("model.safetensors", b""),
    "a header of all memory": written("model.safetensors", b"\xff" * 64),
    "a header of nonsense": written("model.safetensors", struct.pack("<Q", 4) + b"nons"),
    "weights cut off": lambda folder: (folder / "model.safetensors").write_bytes(
        (folder / "model.safetensors").read_bytes()[:-8]
    ),
}
ODD = {
    "numbers in words": {
        "vocab_size": "many",
        "hidden_size": None,
        "num_nextn_predict_layers": "one",
    },
    "negative numbers": {"vocab_size": -1, "hidden_size": -2, "num_nextn_predict_layers": -1},
    "classes of numbers": {"architectures": [3, None]},
    "a class of its own": {"architectures": "LlamaForCausalLM"},
    "layers in words": {
        "eagle_aux_hidden_state_layer_ids": "all",
        "speculators_model_type": "eagle3",
    },
    "layers beyond": {
        "eagle_aux_hidden_state_layer_ids": [10**30],
        "speculators_model_type": "eagle3",
    },
    "settings in lists": {
        "dflash_config": [1],
        "eagle_config": [1],
        "mtp_config": [1],
        "speculators_config": [1],
    },
    "a target in numbers": {"speculators_config": {"verifier": {"name_or_path": 3}}},
    "layers in a list": {"text_config": [1], "transformer_layer_config": [1]},
    "control characters": {"speculators_config": {"verifier": {"name_or_path": "\x1b[31m\n" * 99}}},
}


@pytest.mark.parametrize("way", HOSTILE)
def test_a_hostile_checkpoint_is_one_sentence(way, tmp_path, target, capsys):
    folder = tmp_path / "d"
    made(folder, CAUSAL, ONE)
    HOSTILE[way](folder)
    for drafter, beside in ((str(folder), target), (target, str(folder))):
        with pytest.raises(UserError) as told:
            inspect_drafter(drafter, beside)
        sentence = str(told.value)
        assert sentence.endswith(".") and "\n" not in sentence and str(tmp_path) not in sentence
    assert main(["inspect", str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("way", ODD)
def test_odd_entries_give_no_traceback(way, tmp_path, target):
    odd = made(tmp_path / "d", CAUSAL | ODD[way], ONE)
    for drafter, beside in ((odd, target), (target, odd)):
        for line in inspect_drafter(drafter, beside).lines():
            assert len(line) < 600


TOKENIZERS = (
    "[]",
    "{",
    '{"model": {"vocab": [[]]}}',
    '{"model": {"vocab": [[1, 2], ["a", 3]]}, "added_tokens": []}',
    '{"model": null}',
)


@pytest.mark.parametrize("text", TOKENIZERS)
def test_an_odd_tokenizer_gives_no_traceback(text, tmp_path, target):
    folder = made(tmp_path / "d", CAUSAL, ONE)
    (tmp_path / "d" / "tokenizer.json").write_text(text)
    assert inspect_drafter(folder, target).lines()


@pytest.mark.parametrize(
    "wish",
    [
        "",
        " ",
        "none such",
        "a\0b",
        "../../etc",
        "x" * 5000,
        "a/b/c",
        "/dev/null",
        "-",
        "ünïcode/ñame",
    ],
)
def test_a_name_of_nothing_is_one_sentence(wish):
    with pytest.raises(UserError) as told:
        inspect_drafter(wish)
    assert str(told.value).endswith(".") and "\n" not in str(told.value)


def test_the_hub_that_does_not_answer_is_one_sentence(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match="The Hub did not answer"):
        inspect_drafter("owner/name")
