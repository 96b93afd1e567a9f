"""Helpers for all recipes, which find and open tokenizer, data and models. They raise UserError if something is
missing."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.errors import UserError
from engine.methods.shared.dflash_model import DFlashModel
from engine.parts.opening import causal_model
from engine.training.tokenizer import load_tokenizer


def say(text: str) -> None:
    print(text, flush=True)


def usual_device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def folder_tokenizer(args):
    path = args.checkpoints / "tokenizer"
    if not path.exists():
        raise UserError(f"no tokenizer in {path}: run the recipe `tokenizer` first")
    return load_tokenizer(path)


def need_data(args) -> None:
    if not (args.data / "tinystories_train.txt").exists():
        raise UserError(
            f"no corpora in {args.data}: see engine/training/sources.py for their public origins (--data)"
        )


def need_file(path: Path, recipe: str) -> Path:
    if not path.exists():
        raise UserError(f"no {path}: run the recipe `{recipe}` first")
    return path


# Name of a model of the family -> its folder within the folder of the models.
PLACES = {
    "target": "target",
    "draft": "draft",
    "larger-draft": "parts/draft-3m",
    "diffusion": "diffusion",
    "diffusion-16": "parts/diffusion-16",
    "datastore": "parts/datastore",
}


def place(args, name: str) -> Path:
    return args.models / PLACES[name]


def open_model(args, name: str):
    path = place(args, name)
    if not (path / "model.safetensors").exists():
        raise UserError(f"no model in {path}: run the recipe that makes it first")
    if name.startswith("diffusion"):
        return DFlashModel.read(path)
    return causal_model(str(path)).eval().requires_grad_(False)
