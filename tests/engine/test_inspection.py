"""A stranger's checkpoint is inspected before it is opened."""

import json
import shutil
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import UserError
from engine.parts import admission
from engine.parts.admission import Allowed, admit
from engine.parts.hub import is_hub_name
from engine.parts.inspection import inspect
from tests.pairs import strangers_pair


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
    import os

    os.mkfifo(folder / "pipe.json")


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
    "code": lambda f: rewrite(f, auto_map={"AutoModelForCausalLM": "evil.Model"}),
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
    "an adapter": lambda f: (f / "adapter_config.json").write_text("{}"),
    "a link out": link_out,
    "a pipe": pipe,
}


@pytest.mark.parametrize("way", SPOILED)
def test_what_may_not_be_opened_is_one_sentence(folder, way):
    SPOILED[way](folder)
    with pytest.raises(UserError) as told:
        inspect(folder)
    sentence = str(told.value)
    assert sentence.endswith(".") and "\n" not in sentence and str(folder.parent) not in sentence


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
