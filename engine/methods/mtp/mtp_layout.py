"""Reads the multi-token-prediction layer of a base checkpoint, or of a file with the layer alone, under the tensor
names that are in use.

    model.layers.N.*      behind the N layers of the model: enorm, hnorm, eh_proj, shared_head.norm (DeepSeek, GLM, Kimi)
    mtp.*                 fc, pre_fc_norm_embedding, pre_fc_norm_hidden, norm, and layers.0.* (Qwen3-Next and later, Mellum)
    model.mtp_layers.0.*  token_layernorm, hidden_layernorm, input_proj, final_layernorm (MiMo)
    model.mtp.layers.0.*  embed_norm, hidden_norm, input_proj, transformer_block.*, with mtp.chain_norm (Inkling)
    mtp_layers.0.*        as in MiMo, with a configuration of vLLM's speculators

If there are several layers, only the first is loaded, and it drafts every token; vLLM does the same with most families.
The input of the projection is the token's embedding followed by the state; in MiMo and Inkling it is the state followed
by the embedding. The layer's state is fed back after the norm, as in speculators, transformers and SGLang (vLLM feeds
it back before the norm in DeepSeek's spelling).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import UserError
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_config import SPECULATORS
from engine.methods.shared.eagle_layout import cell_of
from engine.parts.eight_bit import unpacked
from engine.parts.files import CONFIG, WEIGHTS, json_object, write_tensors
from engine.parts.mtp_fields import INNER, NESTED, mtp_layers, number
from engine.parts.opening import refuse_pickled
from engine.parts.stored_file import entries

OURS = {
    "pair_norms.0": "enorm token_layernorm embed_norm pre_fc_norm_embedding",
    "pair_norms.1": "hnorm hidden_layernorm hidden_norm pre_fc_norm_hidden",
    "fc": "eh_proj input_proj fc",
    "norm": "shared_head.norm final_layernorm norm post_norm chain_norm",
}
"""Our name of a module -> its published names."""
PUBLISHED = {
    "pair_norms.0": "token_layernorm",
    "pair_norms.1": "hidden_layernorm",
    "fc": "input_proj",
    "norm": "final_layernorm",
    "layers.0": "",
}
"""Our name of a module -> its name in speculators."""
BLOCK = ("mtp_block.", "transformer_block.")
COPIES = ("shared_head.head.", "embed_tokens.", "lm_head.", "rotary_emb.")
"""Prefixes of the names of those tensors in the layer that only repeat what the target has, such as its head. These
tensors are not loaded."""
UNKNOWN = (
    (".experts.", "its feed-forward part is a mixture of experts"),
    ("kv_a_proj", "its attention keeps compressed keys and values (MLA)"),
    ("linear_attn.", "its attention is linear"),
    ("mixer.", "it keeps a recurrent state"),
    ("markov_head.", "it is a DSpark drafter"),
)
"""A part of a tensor's name -> why a layer with such a tensor cannot be used here."""
STATE_FIRST = "mtp_hidden_states_first"
"""The key in a configuration that says whether the projection's input has the state before the token's embedding."""


def read_mtp(folder: str | Path, dtype: torch.dtype, device: str) -> EagleCell:
    """Load the first MTP layer in a folder. Raises UserError, one sentence, if the folder has no layer that can be
    used."""
    folder = Path(folder)
    refuse_pickled(str(folder))
    try:
        raw = json_object(folder / CONFIG)
        files = {file: entries(file) for file in sorted(folder.glob("*.safetensors"))}
        names = _names(raw, [key for tensors in files.values() for key in tensors])
        if not names:
            raise UserError(_nothing(raw, files, folder.name))
        shapes = {
            names[key]: entry[0]
            for tensors in files.values()
            for key, entry in tensors.items()
            if key in names
        }
        _refuse_unknown(raw, shapes, folder.name)
        named = _read(names, files)
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"There is no MTP layer to open at {folder.name}.") from error
    projection = named.get("fc.weight")
    if projection is not None and projection.dim() and _state_first(raw, names):
        named["fc.weight"] = torch.cat(projection.chunk(2, -1)[::-1], -1)
    cell = cell_of(raw, "mtp", named, folder.name, dtype)
    return cell.to(device).eval().requires_grad_(False)


def write_mtp(cell: EagleCell, folder: str | Path, about: Mapping[str, object]) -> None:
    """Write the layer alone, in bfloat16, in the layout of speculators. about: further fields of config.json."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, tensor in cell.state_dict().items():
        ours = next(ours for ours in PUBLISHED if name.startswith(f"{ours}."))
        parts = ("mtp_layers.0", PUBLISHED[ours], name.removeprefix(f"{ours}."))
        tensors[".".join(filter(None, parts))] = tensor.detach().to("cpu", torch.bfloat16)
    write_tensors(folder / WEIGHTS, tensors)
    config = cell.config.write() | dict(about)
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def _names(raw: Mapping, keys: Iterable[str]) -> dict[str, str]:
    """Return a dictionary from the layer's tensors, by their keys in the checkpoint, to their names in our cell. keys:
    all keys of the checkpoint."""
    last = number(raw, "num_hidden_layers")
    places = [r"mtp_layers\.0\.", r"mtp\.layers\.0\.", r"mtp\."]
    if last is not None and SPECULATORS not in raw:
        places.append(rf"layers\.{last}\.")
    place = re.compile(rf"(?:^|\.)(?:{'|'.join(places)})(?!layers\.)(.+)")
    layer_keys = {key: match[1] for key in keys if (match := place.search(key))}
    return {key: _ours(rest) for key, rest in layer_keys.items() if not rest.startswith(COPIES)}


def _ours(rest: str) -> str:
    """Return the name of a tensor in our cell. rest: the tensor's published name, without the layer's prefix."""
    module, _, leaf = rest.rpartition(".")
    for ours, published in OURS.items():
        if module in published.split():
            return f"{ours}.{leaf}"
    for block in BLOCK:
        rest = rest.removeprefix(block)
    return f"layers.0.{rest}"


def _nothing(raw: Mapping, files: Mapping, name: str) -> str:
    """Return the sentence for the user that says why no MTP layer was found in a folder."""
    if re.match(r"gemma4\w*_assistant", str(raw.get("model_type"))):
        return f"{name} is a Gemma 4 assistant, which reads the target's own cache; such drafters cannot be read here."
    promised = mtp_layers(raw, [])
    if promised is None:
        return f"{name} has no MTP layer."
    return (
        f"{name} promises {promised.layers} MTP layers ({promised.field}), and its files hold none in a spelling that is "
        "known here."
    )


def _read(names: Mapping[str, str], files: Mapping[Path, Mapping]) -> dict[str, Tensor]:
    """Load the layer's tensors from the files; return them under the names of our cell. 8-bit tensors are unpacked;
    raises ValueError for an 8-bit tensor without a scale."""
    tensors: dict[str, Tensor] = {}
    for file, keys in files.items():
        with safe_open(file, "pt") as stream:
            tensors |= {names[key]: stream.get_tensor(key) for key in keys if key in names}
    return unpacked(tensors)


def _inner(raw: Mapping) -> Mapping:
    """Return the part of a checkpoint's configuration that describes its layers; in some checkpoints this is a nested
    object."""
    return next((raw[key] for key in INNER if isinstance(raw.get(key), dict)), raw)


def _refuse_unknown(raw: Mapping, shapes: Mapping[str, tuple[int, ...]], name: str) -> None:
    """Raise UserError for a layer that is not built like those of Llama and Qwen3."""
    reason = next((why for part, why in UNKNOWN if any(part in key for key in shapes)), "")
    inner = _inner(raw)
    query, output = (shapes.get(f"layers.0.self_attn.{x}_proj.weight") or (0,) for x in "qo")
    rope = inner.get("rope_parameters")
    turned = {**inner, **(rope if isinstance(rope, dict) else {})}.get("partial_rotary_factor", 1.0)
    if query[0] and query[0] == 2 * output[-1]:
        reason = reason or "its attention is gated"
    if turned not in (None, 1.0):
        reason = reason or "its rotary positions turn a part of each head only"
    if reason:
        raise UserError(
            f"The MTP layer of {name} cannot be read here: {reason}; those that are like a layer of Llama or Qwen3 can."
        )


def _state_first(raw: Mapping, names: Iterable[str]) -> bool:
    """Whether the projection's input has the state before the token's embedding."""
    declared = raw.get(STATE_FIRST, _inner(raw).get(STATE_FIRST))
    if declared is not None:
        return bool(declared)
    mimo = SPECULATORS not in raw and any("mtp_layers.0." in key for key in names)
    return NESTED[0] in raw or mimo
