"""Reads and writes EAGLE checkpoints, and detects which of the published layouts a checkpoint has.

``eagle`` (EAGLE-1 and 2): ``fc`` over embedding and feature, ``layers.0`` without an input norm.
``eagle3``: ``midlayer``, ``fc`` over three features, ``norm``, ``lm_head`` over the draft's own vocabulary, ``d2t``
(offsets: the target's token is i + d2t[i]) and ``t2d`` (bool, over the target's vocabulary). If a checkpoint has d2t
and t2d but no ``lm_head``, the cell uses rows of the target's head; all published checkpoints have an ``lm_head``.
``speculators``: like ``eagle3``, but with ``layers.0`` for ``midlayer`` and vLLM's form of config.
``peagle``: like ``speculators``, with ``mask_hidden`` [1, 1, 3 Ht], where Ht is the target's hidden size. Checkpoints
of any other layout may have this tensor, too.
EAGLE-3.1 adds the tensors ``fc_norm.0`` to ``fc_norm.2``, and ``norm_output`` to the config.
FSPAD's cells have the layout ``eagle`` with ``feature_sampler`` and ``readout`` added; no FSPAD checkpoint is
published.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from engine.errors import UserError
from engine.methods.shared.eagle_cell import EagleCell, Pieces
from engine.methods.shared.eagle_config import PUBLISHED, EagleConfig, Layout
from engine.parts.files import in_dtype, json_object, stored_tensors, write_tensors
from engine.parts.opening import refuse_pickled
from engine.parts.stored_file import weights_at

WEIGHTS, CONFIG = "model.safetensors", "config.json"
MIDLAYER, FIRST = "midlayer.", "layers.0."
NOT_USED = ("verifier_lm_head.weight", "verifier_norm.weight")
"""Names of tensors that are copies of the target's; training tools leave them in checkpoints, and they are ignored
here."""


def read_cell(folder: str | Path, dtype: torch.dtype, device: str) -> EagleCell:
    """Return the cell in a folder, in any layout. Raises UserError if the folder has no usable cell."""
    folder = Path(folder)
    refuse_pickled(str(folder))
    try:
        raw = json_object(folder / CONFIG)
        tensors = stored_tensors(weights_at(folder, WEIGHTS) or folder / WEIGHTS)
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"There is no feature drafter to open at {folder.name}.") from error
    layout = layout_of(raw, tensors, folder.name)
    cell = cell_of(raw, layout, _ours(tensors), folder.name, dtype)
    _check_vocabulary(cell, folder.name)
    return cell.to(device).eval().requires_grad_(False)


def cell_of(
    raw: dict, layout: Layout, named: Mapping[str, Tensor], name: str, dtype: torch.dtype
) -> EagleCell:
    """Return the cell for the configuration ``raw`` and for tensors under the names that ``EagleCell`` gives them.
    name: the checkpoint's name, for messages. Raises UserError if the configuration cannot be used, or if the tensors
    do not fit it."""
    try:
        config = EagleConfig.read(raw, layout, _layers(named))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        words = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise UserError(f"The configuration of {name} cannot be used: {words}.") from error
    try:
        with torch.device("meta"):
            cell = EagleCell(config, _pieces(named))
        _check_shapes(cell, named, name)
        return _filled(cell, named, dtype)
    except (TypeError, ValueError, KeyError, RuntimeError) as error:
        raise UserError(f"The configuration of {name} cannot be used: {error}.") from error


def layout_of(raw: Mapping[str, object], tensors: Mapping[str, Tensor], name: str) -> Layout:
    """The layout of a checkpoint, found from its config and tensor names. Raises UserError if it has no supported
    layout."""
    kind = raw.get("speculators_model_type")
    layouts = {said: layout for layout, (said, _) in PUBLISHED.items()}
    if kind is not None and kind not in layouts:
        raise UserError(
            f"{name} is a speculator of the kind {kind!r}; here it must be {' or '.join(layouts)}."
        )
    if "fc.weight" not in tensors:
        raise UserError(f"{name} is not a feature drafter: it has no tensor fc.weight.")
    if kind is not None:
        return layouts[kind]
    if any(key.startswith((MIDLAYER, f"{FIRST}hidden_norm")) for key in tensors):
        return "eagle3"
    if any(key.startswith(FIRST) for key in tensors):
        return "eagle"
    raise UserError(f"{name} is not a feature drafter: it has neither a midlayer nor layers.")


def write_cell(
    cell: EagleCell,
    folder: str | Path,
    about: Mapping[str, object],
    dtype: torch.dtype = torch.bfloat16,
) -> None:
    """Write the cell to a folder, in the layout that its configuration names. about: more entries for config.json, such
    as the target's digest (``engine.parts.digest``). Rows that were taken from the target's head are not written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, tensor in cell.state_dict().items():
        if name == "lm_head.weight" and not cell.pieces.own_head:
            continue
        if cell.config.layout == "eagle3":
            name = name.replace(FIRST, MIDLAYER, 1) if name.startswith(FIRST) else name
        stored = tensor.detach().to("cpu")
        tensors[name] = stored.to(dtype) if stored.is_floating_point() else stored
    write_tensors(folder / WEIGHTS, tensors)
    config = cell.config.write() | dict(about)
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def _ours(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint under the names that ``EagleCell`` gives them."""
    named = {}
    for name, tensor in tensors.items():
        if name.startswith(MIDLAYER):
            name = FIRST + name.removeprefix(MIDLAYER)
        if name not in NOT_USED and not name.endswith("rotary_emb.inv_freq"):
            named[name] = tensor
    return named


def _layers(named: Iterable[str]) -> int:
    """How many layers the tensor names mention, at least 1."""
    numbers = {name.split(".")[1] for name in named if name.startswith("layers.")}
    return max(1, len(numbers))


def _pieces(named: Mapping[str, Tensor]) -> Pieces:
    attention = f"{FIRST}self_attn"
    return Pieces(
        fc_bias="fc.bias" in named,
        attention_bias=f"{attention}.q_proj.bias" in named,
        output_bias=f"{attention}.o_proj.bias" in named,
        head_norms=f"{attention}.q_norm.weight" in named,
        input_norm="input_norm.weight" in named,
        fc_norm="fc_norm.0.weight" in named,
        norm="norm.weight" in named,
        own_head="lm_head.weight" in named,
        own_embeddings="embed_tokens.weight" in named,
        own_vocabulary="d2t" in named,
        readout="readout.weight" in named,
        masks="mask_hidden" in named,
    )


def _check_shapes(cell: EagleCell, named: Mapping[str, Tensor], name: str) -> None:
    """Raise UserError if a tensor is missing or unexpected, or if its shape is not the one that follows from the
    configuration."""
    expected = cell.state_dict()
    needed = {"norm.weight"} if cell.config.layout != "eagle" else set()
    if cell.config.layout == "peagle":
        needed.add("mask_hidden")
    if cell.config.fused and not cell.pieces.own_vocabulary:
        needed.add("lm_head.weight")  # the rows of some tokens can be the target's
    lacking = sorted((expected.keys() | needed) - named.keys())
    if lacking:
        raise UserError(f"The weights of {name} lack {lacking[0]}, which a feature drafter has.")
    unknown = sorted(named.keys() - expected.keys())
    if unknown:
        raise UserError(f"{name} is not a feature drafter that is known here: it has {unknown[0]}.")
    for key, tensor in expected.items():
        if tensor.shape != named[key].shape:
            raise UserError(
                f"{key} of {name} has the shape {list(named[key].shape)}, but its configuration "
                f"promises {list(tensor.shape)}."
            )


def _filled(cell: EagleCell, named: Mapping[str, Tensor], dtype: torch.dtype) -> EagleCell:
    """Return the cell with these tensors as its weights, in ``dtype``. cell: a cell on the meta device, made from its
    configuration."""
    filled = in_dtype(EagleCell(cell.config, cell.pieces), dtype)
    filled.load_state_dict(dict(named))
    return filled


def _check_vocabulary(cell: EagleCell, name: str) -> None:
    tokens = cell.target_tokens
    if tokens is None:
        return
    size = cell.config.vocab_size
    if int(tokens.min()) < 0 or int(tokens.max()) >= size or len(tokens.unique()) < len(tokens):
        raise UserError(
            f"The table d2t of {name} does not name a token of its own for each entry, out of {size}."
        )
