"""The files of a part: weights as safetensors, and a config.json. Opening them runs no code from the files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from engine.errors import UserError
from engine.parts.eight_bit import LARGEST, STORED, packed, unpacked
from engine.parts.size_limits import free_bytes
from engine.parts.stored_file import entries, tensors_in, weights_at
from engine.text_file import ENCODING

WEIGHTS, CONFIG = "model.safetensors", "config.json"
PICKLED = (".pt", ".bin", ".pth", ".ckpt", ".pkl")
MOST_JSON = 64 << 20  # bytes


def read_tensors(folder: Path, noun: str, names: Sequence[str] = (WEIGHTS,)) -> dict[str, Tensor]:
    """All tensors of the first of these files that exists, by name, in float32. noun: the kind of part, for messages.

    Raises UserError, one sentence, if none exists or the file is damaged.
    """
    there = (weights_at(folder, name) for name in names)
    file = next((file for file in there if file is not None and file.is_file()), None)
    if file is None:
        pickled = sorted(path.name for path in folder.glob("*") if path.suffix in PICKLED)
        if pickled:
            raise UserError(
                f"The weights in {folder.name} are pickled ({pickled[0]}), and to open those can run "
                f"code; save them as {names[0]}."
            )
        raise UserError(f"There is no {noun} to open at {folder.name}.")
    try:
        return {name: tensor.float() for name, tensor in stored_tensors(file).items()}
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file.name} of {folder.name} is damaged or cut off.") from error


def stored_tensors(file: Path) -> dict[str, Tensor]:
    """All tensors in a file of weights by name, in their stored dtype; tensors in 8 bits are unpacked (``eight_bit``).

    Raises UserError, before any tensor is read, if they would be larger than the free memory as float32; UserError if
    an 8-bit tensor has no fitting scale; and OSError or SafetensorError if the file is missing or damaged.
    """
    needed, free = 4 * sum(math.prod(shape) for shape, _ in entries(file).values()), free_bytes()
    if needed > free:
        raise UserError(
            f"{file.name} of {file.parent.name} needs {needed / 1e9:,.2f} GB of memory; "
            f"{free / 1e9:,.2f} GB are free."
        )
    tensors = tensors_in(file)
    try:
        return unpacked(tensors)
    except ValueError as error:
        raise UserError(f"The weights of {file.parent.name} cannot be used: {error}.") from error


def in_eight_bits(file: Path) -> bool:
    """Whether a safetensors file holds tensors in 8 bits. Raises OSError or SafetensorError if it cannot be read."""
    return any(dtype in STORED for _, dtype in entries(file).values())


def json_object(file: Path) -> dict:
    """The JSON object in a file. Raises ValueError, whose message is a clause for the end of the caller's sentence, if
    the file holds none."""
    try:
        if file.stat().st_size > MOST_JSON:
            raise ValueError(f"{file.name} is too large")
        content = json.loads(file.read_text(ENCODING))
    except OSError:
        raise ValueError(f"{file.name} cannot be read") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError(f"{file.name} is not valid JSON") from None
    if type(content) is not dict:
        raise ValueError(f"{file.name} is not a JSON object")
    return content


def load_published(
    module: nn.Module, names: Mapping[str, str], tensors: Mapping[str, Tensor]
) -> None:
    """Load a module's weights; the module may be on the device meta. names: published name -> name in the module.

    Raises ValueError, whose message is a clause for the end of the caller's sentence, if a weight is missing,
    superfluous or of another shape.
    """
    weights = module.state_dict()
    for name, own in names.items():
        if name not in tensors:
            raise ValueError(f"{name} is missing")
        shape, needed = list(tensors[name].shape), list(weights[own].shape)
        if shape != needed:
            raise ValueError(f"{name} has the shape {shape}, where {needed} is needed")
    more = sorted(set(tensors) - set(names))
    if more:
        raise ValueError(f"{more[0]} is not one of its weights")
    module.load_state_dict({own: tensors[name] for name, own in names.items()}, assign=True)


def in_dtype(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The module with its weights in this dtype. Buffers outside the state dict keep their dtype: rotary frequencies
    rounded to bfloat16 would rotate late positions by other angles than in training."""
    weights = module.state_dict().keys()
    buffers = {name: buffer for name, buffer in module.named_buffers() if name not in weights}
    module.to(dtype)
    for name, buffer in buffers.items():
        owner, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(owner), leaf, buffer)
    return module


def part_config(folder: Path, names: Sequence[str] = (CONFIG,)) -> dict:
    """The first of these configs that exists in the folder; {} if none exists. Raises ValueError, whose message is a
    clause for the end of the caller's sentence, if it is not a JSON object."""
    file = next((folder / name for name in names if (folder / name).is_file()), None)
    return {} if file is None else json_object(file)


def read_config(folder: Path) -> dict:
    """The folder's config.json; {} if there is no such file. Raises UserError if it is not a JSON object."""
    if not (folder / CONFIG).is_file():
        return {}
    return needed_config(folder)


def needed_config(folder: Path, name: str = CONFIG) -> dict:
    """The config of this name in a folder. Raises UserError if there is no such file or it is not a JSON object."""
    try:
        return json_object(folder / name)
    except ValueError:
        raise UserError(f"The {name} of {folder.name} is not a JSON object.") from None


def write_part(folder: Path, tensors: Mapping[str, Tensor], config: Mapping) -> None:
    """Write a part's config and its tensors: floating-point tensors in bfloat16, others in their own dtype."""
    folder.mkdir(parents=True, exist_ok=True)
    halves = {
        name: tensor.detach().to(
            "cpu", torch.bfloat16 if tensor.is_floating_point() else tensor.dtype
        )
        for name, tensor in tensors.items()
    }
    write_tensors(folder / WEIGHTS, halves)
    (folder / CONFIG).write_text(json.dumps(dict(config), indent=2) + "\n", "utf-8")


def write_tensors(file: Path, tensors: Mapping[str, Tensor]) -> None:
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        file,
        metadata={"format": "pt"},
    )
    file.chmod(0o644)  # safetensors makes it private


def halve(folder: Path, steps: int = LARGEST) -> tuple[int, int]:
    """Rewrite the part's weights with its matrices in 8 bits. Returns the file's bytes before and after. steps: see
    ``packed``. Raises UserError if the folder holds no part."""
    file = folder / WEIGHTS
    try:
        tensors = stored_tensors(file)
    except (OSError, SafetensorError) as error:
        raise UserError(f"There are no weights of a part in {folder.name}.") from error
    before = file.stat().st_size
    write_tensors(file, packed(tensors, steps))
    return before, file.stat().st_size
