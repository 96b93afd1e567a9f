"""Inspects a checkpoint before any of it is loaded, for visitors of the page and for the command line.

Only safetensors are opened, no code from the checkpoint runs, nothing outside its folder is read, and its size is known
before memory is allocated.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from transformers import CONFIG_MAPPING, GenerationConfig

from engine.errors import UserError
from engine.parts.eight_bit import SCALE, STORED
from engine.parts.hub import name_of
from engine.parts.promise import check_promise
from engine.parts.stored_file import MOST_HEADER, entries, weights_at, weights_in

MOST_NUMBER = 1 << 24
"""Largest whole number in a configuration: contexts and vocabularies stay below it."""
MOST_LAYERS, MOST_EXPERTS = 512, 1024
MOST_MODULES = 1 << 15
"""The most layers times experts: each may become a module, and building a module takes time even without weights."""
MOST_FILES, MOST_LIST = 10_000, 4096
MOST_CONFIG, MOST_TOKENIZER = 1 << 20, 128 << 20  # bytes
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
GENERATION = "generation_config.json"
SPREAD = "shard-"
"""If the name of one file in the folder begins like this, transformers reads all files whose names begin like this,
because some trainers save several."""
RENAMES = "attribute_map"
"""The configuration entry that could rename other entries, so that the checks in this module would miss the renamed
entries."""


@dataclass(frozen=True)
class Checkpoint:
    """The model in a folder. name: the name shown to people. parameters: the number of its parameters. nbytes: the
    bytes of its weights as float32, and of all other tensors that its configuration creates, for instance position
    tables."""

    folder: Path
    name: str
    architecture: str
    parameters: int
    nbytes: int


def inspect(
    folder: str | Path, root: str | Path | None = None, name: str | None = None
) -> Checkpoint:
    """Check a causal language model in Hugging Face format.

    root: the folder that no link may lead out of; None is the checkpoint's own folder. name: the name of the model for
    people; None takes the folder's name. Raises UserError, one sentence, for any checkpoint that may not be opened.
    """
    folder = Path(folder)
    name = name or name_of(folder)
    try:
        return _inspected(folder, Path(root or folder), name)
    except OSError as error:
        raise UserError(f"The files of {name} cannot be read: {error.strerror}.") from None


def _inspected(folder: Path, root: Path, name: str) -> Checkpoint:
    if not folder.is_dir():
        raise UserError(f"There is no folder of a model at {name}.")
    refuse_links(folder, root, name)
    config = _json(folder / "config.json", name, MOST_CONFIG)
    _refuse_code(folder, config, name)
    _refuse_giants(config, name)
    _check_generation(folder, name)
    if _size(folder / "tokenizer.json") > MOST_TOKENIZER:
        raise UserError(f"The tokenizer of {name} is too large.")
    if (folder / "adapter_config.json").exists():
        raise UserError(f"{name} is an adapter; a whole model is needed.")
    promise = check_promise(folder, name, _shapes(folder, name))
    return Checkpoint(folder, name, *promise)


def refuse_links(folder: Path, root: Path, name: str) -> None:
    """Raises UserError unless every entry of the folder, at every depth, is a file or a folder below the root."""
    inside = root.resolve()
    if inside == Path(inside.anchor):
        return
    seen, left, count = {folder.resolve()}, [folder], 0
    while left:
        for path in left.pop().iterdir():
            count += 1
            try:
                real = path.resolve()
            except RuntimeError:  # links in a circle
                raise UserError(f"{path.name} in {name} is no file.") from None
            if not real.is_relative_to(inside):
                raise UserError(f"{path.name} in {name} leads out of the folder.")
            if not (real.is_file() or real.is_dir()):
                raise UserError(f"{path.name} in {name} is no file.")
            if count > MOST_FILES:
                raise UserError(f"The folder of {name} holds too many files.")
            if real.is_dir() and real not in seen:
                seen.add(real)
                left.append(path)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _json(path: Path, name: str, most: int) -> dict:
    """The JSON object in a file of the model ``name``. Raises UserError if the file is missing, too large or not a JSON
    object."""
    where = f"{path.name} of {name}"
    if not path.is_file():
        raise UserError(f"There is no {where}.")
    if _size(path) > most:
        raise UserError(f"The {where} is too large.")
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        raise UserError(f"The {where} is not valid JSON.") from None
    if not isinstance(content, dict):
        raise UserError(f"The {where} is not a JSON object.")
    return content


def _refuse_code(folder: Path, config: dict, name: str) -> None:
    """Raises UserError for a checkpoint that needs code of its own. A checkpoint whose model type transformers knows
    can be opened without its own code."""
    tokenizer = folder / "tokenizer_config.json"
    settings = _json(tokenizer, name, MOST_CONFIG) if tokenizer.exists() else {}
    own_kind = "auto_map" in config and config.get("model_type") not in CONFIG_MAPPING
    if own_kind or "auto_map" in settings:
        raise UserError(f"{name} brings code of its own, which is not run here.")


def _check_generation(folder: Path, name: str) -> None:
    file = folder / GENERATION
    if not file.exists():
        return
    _json(file, name, MOST_CONFIG)
    try:
        GenerationConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers raises many kinds for one cause
        raise UserError(f"The {GENERATION} of {name} is no generation config.") from error


def _refuse_giants(config: dict, name: str) -> None:
    level: list[tuple[str, object]] = list(config.items())
    layers = experts = 1
    for _ in range(8):
        deeper: list[tuple[str, object]] = []
        for key, value in level:
            if key == RENAMES:
                raise UserError(f"The configuration of {name} renames its entries: {key}.")
            if isinstance(value, dict):
                deeper += [(str(inner_key), entry) for inner_key, entry in value.items()]
            elif isinstance(value, list):
                if len(value) > MOST_LIST:
                    raise UserError(f"A list in the configuration of {name} is too long: {key}.")
                deeper += [(key, entry) for entry in value]
            elif isinstance(value, int | float) and not _modest(key, value):
                raise UserError(f"The configuration of {name} asks for too much: {key}.")
            elif isinstance(value, int) and "expert" in key:
                experts = max(experts, value)
            elif isinstance(value, int) and _counts_layers(key):
                layers = max(layers, value)
        if not deeper:
            break
        level = deeper
    else:
        raise UserError(f"The configuration of {name} is nested too deeply.")
    if layers * experts > MOST_MODULES:
        raise UserError(f"The configuration of {name} asks for too much: experts in each layer.")


def _counts_layers(key: str) -> bool:
    return "layers" in key or key == "n_layer"


def _modest(key: str, value: float) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    most = MOST_NUMBER
    if _counts_layers(key) or key in ("n_head", "num_attention_heads"):
        most = MOST_LAYERS
    elif "expert" in key:
        most = MOST_EXPERTS
    elif "parameters" in key or "theta" in key:
        most = 1 << 53
    return -most <= value <= most


def _shapes(folder: Path, name: str) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor, from the headers of the files that transformers reads. No tensor is read."""
    shapes: dict[str, tuple[int, ...]] = {}
    scales: set[str] = set()
    for file in _weights(folder, name):
        entries = _header(file, name)
        shapes |= {key: shape for key, (shape, _) in entries.items()}
        scales |= {key + SCALE for key, (_, dtype) in entries.items() if dtype in STORED}
    return {key: shape for key, shape in shapes.items() if key not in scales}


def _weights(folder: Path, name: str) -> list[Path]:
    """The single file of weights, or the files that the index names, which must be in the same folder."""
    for file in folder.iterdir():
        if file.name.startswith(SPREAD):
            raise UserError(
                f"{name} has a file whose name begins with {SPREAD}, which would be read in place of its weights."
            )
    whole = weights_at(folder, WEIGHTS)
    if whole is not None:
        return [whole]
    if (folder / INDEX).exists():
        parts = _json(folder / INDEX, name, MOST_HEADER).get("weight_map")
        if not isinstance(parts, dict) or not parts:
            raise UserError(f"The {INDEX} of {name} names no files.")
        for part in parts.values():
            if not isinstance(part, str) or part != Path(part).name or "\0" in part:
                raise UserError(f"The {INDEX} of {name} names a file that is not in its folder.")
            if not part.endswith(".safetensors") or not (folder / part).is_file():
                raise UserError(f"The {INDEX} of {name} names {part[:80]!r}, which {name} lacks.")
        return [folder / file_name for file_name in sorted(set(parts.values()))]
    if weights_in(folder):
        raise UserError(f"{name} has no {WEIGHTS}.")
    unsafe = sorted(file_name.name for file_name in folder.glob("*.bin")) + sorted(
        file_name.name for file_name in folder.glob("*.pt*")
    )
    pickled = f"only {unsafe[0]}, which may hold a program" if unsafe else "none"
    raise UserError(f"Weights must be safetensors; {name} has {pickled}.")


def _header(file: Path, name: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """Name -> shape and dtype of the tensors in a file, as ``entries`` returns them. Raises UserError for a damaged
    file or an implausible size."""
    broken = UserError(f"{file.name} of {name} is damaged or cut off.")
    try:
        tensors = entries(file)
    except (OSError, SafetensorError):
        raise broken from None
    if any(size > MOST_NUMBER for shape, _ in tensors.values() for size in shape):
        raise broken
    return tensors
