"""Loads the adapter of Kangaroo (``engine.methods.kangaroo.adapter``) from a folder in the published layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from engine.errors import UserError
from engine.fast.cpu.compiled_model import CompiledModel
from engine.methods.kangaroo.adapter import Adapter, AdapterConfig
from engine.methods.kangaroo.fast import compiled_readers
from engine.model.language_model import LanguageModel
from engine.parts.files import load_published, read_config, read_tensors
from engine.parts.kinds import Opener, PartKind

NOUN = "Kangaroo adapter"
_ANGLES = "rotary_emb.inv_freq"  # saved by old checkpoints, made anew here


def pick_adapter_readers(adapter: Adapter, target: LanguageModel) -> None:
    """Decide how a Kangaroo adapter reads: compiled together with the head of a compiled target, through the module
    beside other targets."""
    if isinstance(target, CompiledModel):
        adapter.make_reader = compiled_readers(adapter, target)


def _load(path: str, target: LanguageModel, dtype, device: str) -> Adapter:
    folder = Path(path)
    raw, tensors = read_config(folder), read_tensors(folder, NOUN)
    try:
        found = _from_published(raw, tensors)
        if found.config.hidden_size != target.hidden_size:
            raise ValueError(
                f"its hidden size is {found.config.hidden_size}, the target's {target.hidden_size}"
            )
        if found.config.exit_layer >= target.layers:
            raise ValueError(
                f"it stands behind {found.config.exit_layer} layers of the target's {target.layers}"
            )
    except ValueError as error:
        raise UserError(f"{folder.name} holds no {NOUN} for {target.name}: {error}.") from None
    found = found.to(device=device, dtype=target.dtype).eval().requires_grad_(False)
    pick_adapter_readers(found, target)
    return found


def _from_published(raw: Mapping, tensors: Mapping[str, Tensor]) -> Adapter:
    tensors = {name: each for name, each in tensors.items() if not name.endswith(_ANGLES)}
    with torch.device("meta"):
        made = Adapter(AdapterConfig.of(raw))
    load_published(made, {name: name for name in made.state_dict()}, tensors)
    return made


def tiny_adapter(target: LanguageModel, opener: Opener | None = None) -> Adapter:
    """An adapter behind the first layer. Untrained, it predicts what the early exit predicts."""
    config = AdapterConfig(target.hidden_size, 2, 1, 8, exit_layer=1)
    return Adapter(config).eval().requires_grad_(False)


KIND = PartKind("adapter", NOUN, _load, tiny_adapter)
