"""Inspects a stranger's checkpoint before anything of it is loaded.

Only safetensors are opened, no code from the checkpoint runs, nothing outside its folder is read, and its
size is known before memory is allocated. A configuration that promises other sizes than the weights have
is refused, because transformers would fill the difference with random numbers.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from engine.errors import UserError

MOST_NUMBER = 1 << 24
"""Largest whole number in a configuration: contexts and vocabularies stay below it."""
MOST_LAYERS, MOST_EXPERTS = 512, 1024
MOST_CONFIG, MOST_HEADER, MOST_TOKENIZER = 1 << 20, 64 << 20, 128 << 20  # bytes
LISTS = ("model.safetensors.index.json", "model.safetensors")
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1}
BYTES |= {"BOOL": 1}


@dataclass(frozen=True)
class Checkpoint:
    """The model in a folder. parameters: their number. nbytes: of the weights in memory, as float32."""

    folder: Path
    architecture: str
    parameters: int

    @property
    def nbytes(self) -> int:
        return 4 * self.parameters


def inspect(folder: str | Path, root: str | Path | None = None) -> Checkpoint:
    """Look at a causal language model in Hugging Face format.

    root: no file may be a link that leads out of this folder; the checkpoint's own folder if None.
    Raises UserError, one sentence, for anything that may not be opened.
    """
    folder = Path(folder)
    name = folder.name
    if not folder.is_dir():
        raise UserError(f"There is no folder of a model at {name}.")
    _refuse_links(folder, Path(root or folder))
    config = _json(folder / "config.json", MOST_CONFIG)
    _refuse_code(folder, config)
    _refuse_giants(config, name)
    if _size(folder / "tokenizer.json") > MOST_TOKENIZER:
        raise UserError(f"The tokenizer of {name} is too large.")
    if (folder / "adapter_config.json").exists():
        raise UserError(f"{name} is an adapter; a whole model is needed.")
    shapes = _shapes(folder)
    architecture = _check_promise(folder, shapes)
    parameters = sum(math.prod(shape) for shape in shapes.values())
    return Checkpoint(folder, architecture, parameters)


def _refuse_links(folder: Path, root: Path) -> None:
    """Everything must lie below the root, and must be a file or a folder."""
    inside = root.resolve()
    for path in folder.iterdir():
        real = path.resolve()
        if not real.is_relative_to(inside):
            raise UserError(f"{path.name} in {folder.name} leads out of the folder.")
        if not (real.is_file() or real.is_dir()):
            raise UserError(f"{path.name} in {folder.name} is no file.")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _json(path: Path, most: int) -> dict:
    where = f"{path.name} of {path.parent.name}"
    if not path.is_file():
        raise UserError(f"There is no {where}.")
    if _size(path) > most:
        raise UserError(f"The {where} is too large.")
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        raise UserError(f"The {where} is not valid JSON.") from None
    if not isinstance(found, dict):
        raise UserError(f"The {where} is not a JSON object.")
    return found


def _refuse_code(folder: Path, config: dict) -> None:
    tokenizer = folder / "tokenizer_config.json"
    settings = _json(tokenizer, MOST_CONFIG) if tokenizer.exists() else {}
    if "auto_map" in config or "auto_map" in settings:
        raise UserError(f"{folder.name} brings code of its own, which is not run here.")


def _refuse_giants(config: dict, name: str) -> None:
    level: list[tuple[str, object]] = list(config.items())
    for _ in range(8):
        deeper: list[tuple[str, object]] = []
        for key, value in level:
            if isinstance(value, dict):
                deeper += [(str(one), other) for one, other in value.items()]
            elif isinstance(value, list):
                if len(value) > 4096:
                    raise UserError(f"A list in the configuration of {name} is too long: {key}.")
                deeper += [(key, other) for other in value]
            elif isinstance(value, int | float) and not _modest(key, value):
                raise UserError(f"The configuration of {name} asks for too much: {key}.")
        if not deeper:
            return
        level = deeper
    raise UserError(f"The configuration of {name} is nested too deeply.")


def _modest(key: str, value: float) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    most = MOST_NUMBER
    if "layers" in key or key in ("n_layer", "n_head", "num_attention_heads"):
        most = MOST_LAYERS
    elif "expert" in key:
        most = MOST_EXPERTS
    elif "parameters" in key or "theta" in key:
        most = 1 << 53
    return -most <= value <= most


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor, from the headers of the files. No tensor is read."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        other = sorted(one.name for one in folder.glob("*.bin")) + sorted(
            one.name for one in folder.glob("*.pt*")
        )
        found = f"only {other[0]}, which may hold a program" if other else "none"
        raise UserError(f"Weights must be safetensors; {folder.name} has {found}.")
    if not any((folder / one).exists() for one in LISTS):
        raise UserError(f"{folder.name} has no model.safetensors.")
    shapes: dict[str, tuple[int, ...]] = {}
    for file in files:
        shapes |= _header(file)
    return shapes


def _header(file: Path) -> dict[str, tuple[int, ...]]:
    broken = UserError(f"{file.name} of {file.parent.name} is damaged or cut off.")
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > min(MOST_HEADER, size - 8):
                raise broken
            entries = json.loads(stream.read(length))
        found, total = {}, 0
        for name, entry in entries.items():
            if name == "__metadata__":
                continue
            shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
            if not all(isinstance(one, int) and 0 <= one <= MOST_NUMBER for one in shape):
                raise broken
            expected = math.prod(shape) * BYTES[entry["dtype"]]
            if end - begin != expected or not 0 <= begin <= end <= size - 8 - length:
                raise broken
            found[name], total = shape, total + expected
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError):
        raise broken from None
    if total > size:
        raise broken
    return found


def _check_promise(folder: Path, shapes: dict[str, tuple[int, ...]]) -> str:
    """Build the model without weights and compare it with the tensors in the files."""
    name = folder.name
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        with torch.device("meta"):
            module = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except Exception as error:  # transformers raises many kinds for one cause
        raise UserError(f"There is no causal language model to open at {name}.") from error
    wanted = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    tied = set(getattr(module, "_tied_weights_keys", None) or ())
    prefix = f"{module.base_model_prefix}."
    for key, shape in wanted.items():
        found = shapes.get(key, shapes.get(key.removeprefix(prefix), shapes.get(prefix + key)))
        if found is None and (key in tied or _is_converted(key)):
            continue
        if found is None:
            raise UserError(f"The weights of {name} lack {key}, which its configuration promises.")
        if found != shape:
            raise UserError(
                f"{key} of {name} has the shape {list(found)}, but its configuration promises "
                f"{list(shape)}."
            )
    return type(module).__name__


def _is_converted(key: str) -> bool:
    """Experts are one tensor in memory and many in a file, under other names."""
    return ".experts." in key
