"""Multi-token-prediction layers that come with a base checkpoint. Each family of models states the number of these
layers in a config entry of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError

from engine.parts.files import CONFIG, json_object
from engine.parts.stored_file import entries

FIELDS = (
    (
        "num_nextn_predict_layers",
        "DeepSeek-V3, GLM-4.5, Ernie, Nemotron-H, EXAONE, Kimi-K3 and others",
    ),
    ("mtp_num_hidden_layers", "Qwen3.5 and later, InternS2"),
    ("num_mtp_modules", "MiniMax-M3"),
    ("num_mtp_layers", "models saved by transformers"),
)
"""Config entry -> the models that have it. The entry is at the top level of the config, or in one of the sections
INNER."""
NESTED = ("mtp_config", "num_nextn_predict_layers")
"""The section and the entry in which the config of Inkling states the number of its MTP layers."""
ROLE = "mtp"
"""The role of a part that is an MTP layer."""
INNER = ("text_config", "transformer_layer_config")
_TENSOR = re.compile(r"(^|\.)(mtp|nextn|mtp_layers|eh_proj|enorm|hnorm)(\.|_|$)")


class MtpLayers(NamedTuple):
    """A checkpoint's MTP layers. layers: their number according to the configuration. field: the name of the entry.
    there: whether the files hold any MTP layer; None if no file was read."""

    layers: int
    field: str
    there: bool | None


def mtp_layers(config: Mapping[str, object], names: Collection[str]) -> MtpLayers | None:
    """The MTP layers of a checkpoint; None if its configuration has none. names: the names of its tensors."""
    count, field = next(
        ((value, name) for name, _ in FIELDS if (value := number(config, name))), (None, "")
    )
    nested = config.get(NESTED[0])
    if count is None and isinstance(nested, dict) and isinstance(nested.get(NESTED[1]), int):
        count, field = nested[NESTED[1]], ".".join(NESTED)
    if not count or count < 0:
        return None
    last = number(config, "num_hidden_layers")
    behind = re.compile(rf"(^|\.)layers\.{last}\.") if last is not None else None
    there = any(_TENSOR.search(key) or (behind and behind.search(key)) for key in names)
    return MtpLayers(count, field, there if names else None)


def number(config: Mapping[str, object], name: str) -> int | None:
    """The value of this entry, at the top level of the config or in one of the sections INNER, if it is a whole number;
    else None."""
    for where in (config, *(config.get(key) for key in INNER)):
        value = where.get(name) if isinstance(where, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def own_layer(target: str) -> dict[str, str]:
    """The MTP layer in a target's own folder, as role -> path; {} if there is none, or the target is no folder."""
    try:
        config = json_object(Path(target) / CONFIG)
        names = [name for file in Path(target).glob("*.safetensors") for name in entries(file)]
    except (OSError, ValueError, SafetensorError):
        return {}
    layers = mtp_layers(config, names)
    return {ROLE: target} if layers is not None and layers.there else {}
