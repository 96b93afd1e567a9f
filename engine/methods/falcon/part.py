"""Falcon's cells in files.

There is no published layout: ``lstm.*`` and ``layer.*`` in model.safetensors, and a config.json like EAGLE's with
``block_size`` added. Embeddings and head are the target's and not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError

from engine.errors import UserError
from engine.methods.falcon.falcon_cell import FalconCell, FalconConfig
from engine.methods.shared.eagle_config import tiny_config
from engine.model.language_model import LanguageModel
from engine.parts.files import in_dtype, json_object, stored_tensors, write_part
from engine.parts.kinds import Opener, PartKind
from engine.parts.opening import refuse_pickled


def write_cell(cell: FalconCell, folder: str | Path, about: Mapping[str, object]) -> None:
    """about: more fields of config.json, the digest of its target among them."""
    write_part(Path(folder), cell.state_dict(), cell.config.write() | dict(about))


UNUSABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError)
"""The errors raised for a configuration that no cell can have."""


@lru_cache(maxsize=4)
def open_cell(path: str, dtype: torch.dtype, device: str) -> FalconCell:
    """A cell, opened once per process. Raises UserError, one sentence, if there is none."""
    folder = Path(path)
    refuse_pickled(path)
    try:
        config = FalconConfig.read(json_object(folder / "config.json"))
        tensors = stored_tensors(folder / "model.safetensors")
    except (*UNUSABLE, OSError, SafetensorError) as error:
        raise UserError(f"There is no block drafter (Falcon) to open at {folder.name}.") from error
    try:
        with torch.device("meta"):
            wanted = FalconCell(config).state_dict()
    except UNUSABLE as error:
        raise UserError(f"The configuration of {folder.name} cannot be used: {error}.") from error
    for name in sorted(wanted.keys() | tensors.keys()):
        if name not in wanted or name not in tensors or wanted[name].shape != tensors[name].shape:
            raise UserError(
                f"The weights of {folder.name} are not those that its configuration promises: {name}."
            )
    cell = in_dtype(FalconCell(config), dtype)
    cell.load_state_dict(tensors)
    return cell.to(device).eval().requires_grad_(False)


def _load(path: str, target: LanguageModel, dtype, device: str) -> FalconCell:
    cell = open_cell(path, target.dtype, device)  # it computes on the target's states
    size = cell.config.layer.hidden_size
    if size != target.hidden_size:
        raise UserError(
            f"This block drafter was trained on another target than {target.name}: it reads states of "
            f"{size} numbers, and the target's have {target.hidden_size}."
        )
    return cell


def tiny_cell(target: LanguageModel, opener: Opener | None = None) -> FalconCell:
    cell = FalconCell(FalconConfig(2, tiny_config(target)))
    for weight in cell.lstm.parameters():
        weight.data *= 4  # as initialised, an LSTM says nearly the same for every text
    return cell.eval().requires_grad_(False)


KIND = PartKind("falcon", "block drafter (Falcon)", _load, tiny_cell)
