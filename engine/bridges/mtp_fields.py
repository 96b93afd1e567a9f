"""Multi-token-prediction layers that come with a base checkpoint: each family of models counts them in another entry."""

from __future__ import annotations

import re
from typing import NamedTuple

from engine.bridges.checkpoint_files import Described

FIELDS = (
    (
        "num_nextn_predict_layers",
        "DeepSeek-V3, GLM-4.5, Ernie, Nemotron-H, EXAONE, Kimi-K3 and others",
    ),
    ("mtp_num_hidden_layers", "Qwen3.5 and later, InternS2"),
    ("num_mtp_modules", "MiniMax-M3"),
    ("num_mtp_layers", "models saved by transformers"),
)
"""Entry -> who uses it. It stands in the configuration or in its ``text_config``."""
NESTED = ("mtp_config", "num_nextn_predict_layers")
"""Inkling's."""
_TENSOR = re.compile(r"(^|\.)(mtp|nextn|mtp_layers|eh_proj|enorm|hnorm)(\.|_|$)")


class MtpLayers(NamedTuple):
    """layers: how many the configuration promises. field: the entry. there: whether the files hold any; None where no file was
    looked into."""

    layers: int
    field: str
    there: bool | None


def mtp_layers(files: Described) -> MtpLayers | None:
    """None for a checkpoint that promises none."""
    count, field = next(
        ((found, name) for name, _ in FIELDS if (found := files.number(name))), (None, "")
    )
    nested = files.config.get(NESTED[0])
    if count is None and isinstance(nested, dict) and isinstance(nested.get(NESTED[1]), int):
        count, field = nested[NESTED[1]], ".".join(NESTED)
    if not count or count < 0:
        return None
    last = files.number("num_hidden_layers")
    behind = re.compile(rf"(^|\.)layers\.{last}\.") if last is not None else None
    there = any(_TENSOR.search(key) or (behind and behind.search(key)) for key in files.shapes)
    return MtpLayers(count, field, there if files.shapes else None)
