"""A whole checkpoint, as a stranger brings it, and ways to spoil it."""

import json
import os
import shutil
import struct
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


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
    """Make this a base model's file: names without the prefix, and no head."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors["lm_head.weight"]
    save_file({name.removeprefix("model."): one for name, one in tensors.items()}, path)


def index(folder, place):
    """Add an index over the same weights that names another place for them. A file beside it has the promised
    tensors."""
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
    """Let the configuration name an index that leads outside the folder, beside weights as promised."""
    shutil.copy(folder / "model.safetensors", folder / "kept.safetensors")
    outside(folder)
    (folder / "kept.safetensors").rename(folder / "model.safetensors")
    (folder / "model.safetensors.index.json").rename(folder / "own.safetensors.index.json")
    rewrite(folder, transformers_weights="own.safetensors.index.json")


def deep_link(folder):
    """Add a link to a file outside, one folder deeper, where chat templates lie."""
    secret = folder.parent.parent / "secret.jinja"
    secret.write_text("secret")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "a.jinja").symlink_to(secret)


def linked_folder(folder):
    """Add a link to a folder of the checkpoint that holds a link to the outside."""
    (folder / "a").mkdir()
    (folder / "a" / "out").symlink_to("/etc")
    (folder / "b").symlink_to(folder / "a")


def circle(folder):
    (folder / "a.json").symlink_to(folder / "b.json")
    (folder / "b.json").symlink_to(folder / "a.json")


def instead(folder, name):
    """Put a folder in the place of a file."""
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()


def half(folder, name):
    raw = (folder / name).read_bytes()
    (folder / name).write_bytes(raw[: len(raw) // 2])


def generation(folder, text):
    (folder / "generation_config.json").write_text(text)
