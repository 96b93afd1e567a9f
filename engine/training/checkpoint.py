"""Writes and loads checkpoints, and exports models in Hugging Face's format in bf16. A file gets its name only when it
is complete, so an incomplete checkpoint is never loaded."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from engine.training.tokenizer import END


def save_checkpoint(path: Path, state: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    torch.save(state, temporary)
    os.replace(temporary, path)


def load_checkpoint(path: Path) -> dict | None:
    """The checkpoint in a file; None if there is no file. Only tensors, numbers and names are loaded, never objects
    that could run code."""
    return torch.load(path, map_location="cpu", weights_only=True) if path.exists() else None


def write_whole(folder: Path, write: Callable[[Path], None]) -> None:
    """Call ``write`` with a temporary folder beside ``folder``, then move the written files into ``folder`` one by
    one."""
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    write(beside)
    folder.mkdir(exist_ok=True)
    for file in beside.iterdir():
        file.replace(folder / file.name)
    beside.rmdir()


def export_model(model, path: Path, tokenizer=None, about: Mapping | None = None) -> None:
    """Write a model, and its tokenizer if there is one, to the folder ``path``. Tensors are stored in bf16, but the
    config names float32, so they are loaded as float32. If the tokenizer has the tokens of the chat template, the
    token that ends a turn also ends a text. about: further fields of the config."""
    if tokenizer is not None and END in tokenizer.get_vocab():
        ends = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids(END)]
        model.generation_config.eos_token_id = ends
    model.save_pretrained(path)
    weights = path / "model.safetensors"
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, metadata={"format": "pt"})
    config = json.loads((path / "config.json").read_text())
    config |= {"dtype": "float32", **(about or {})}
    (path / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    weights.chmod(0o644)
    if tokenizer is not None:
        export_tokenizer(tokenizer, path)


def export_tokenizer(tokenizer, path: Path) -> None:
    """Save the tokenizer to a folder as compact JSON. The entries that say where it was loaded from are left out, and
    its class name is one that every version of transformers has."""
    tokenizer.save_pretrained(path, save_jinja_files=False)
    entries = path / "tokenizer.json"
    read = json.loads(entries.read_text("utf-8"))
    entries.write_text(json.dumps(read, ensure_ascii=False, separators=(",", ":")), "utf-8")
    file = path / "tokenizer_config.json"
    config = json.loads(file.read_text())
    for name in ("is_local", "local_files_only", "backend"):
        config.pop(name, None)
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    file.write_text(json.dumps(config, indent=2) + "\n")
