"""The draft models among a target's parts: any of them can draft in place of the part of the role "draft"."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError

from engine.errors import UserError, unknown
from engine.parts.digest import FIELD, check_belongs
from engine.parts.eight_bit import SCALE
from engine.parts.files import json_object
from engine.parts.loading import ModelPaths
from engine.parts.stored_file import entries, weights_in

ROLE = KIND = "draft"


class DraftPart(NamedTuple):
    path: str
    parameters: int


def drafts_among(paths: ModelPaths) -> dict[str, DraftPart]:
    """The draft models among the parts, by the names of their folders, with the part of the role "draft" first; {} if
    no part has that role.

    Another part is included if it is a causal language model that was not trained for another target, and either has
    the target's tokens, or has no tokenizer and was trained for this target. Only configs and headers are read, once
    per process.
    """
    return dict(_found(paths.target, tuple(paths.parts.items())))


def with_named_draft(paths: ModelPaths, options: Mapping) -> tuple[ModelPaths, dict]:
    """The models, in which the draft model that the options name takes the role "draft"; and the options without that
    entry. Raises UserError if none of the parts is a draft model of this name."""
    rest = dict(options)
    if ROLE not in rest:
        return paths, rest
    name, drafts = rest.pop(ROLE), drafts_among(paths)
    if not isinstance(name, str) or name not in drafts:
        raise unknown("draft", str(name)[:80], list(drafts))
    return paths.with_parts({ROLE: drafts[name].path}), rest


@lru_cache(maxsize=8)
def _found(target: str, parts: tuple[tuple[str, str], ...]) -> tuple[tuple[str, DraftPart], ...]:
    usual = dict(parts).get(ROLE)
    if usual is None:
        return ()
    drafts = {Path(usual).name: DraftPart(usual, _parameters(usual))}
    tokens = tokens_of(target)
    for role, path in parts:
        if role != ROLE and tokens and _is_draft(path, target, tokens):
            drafts.setdefault(Path(path).name, DraftPart(path, _parameters(path)))
    return tuple(drafts.items())


def _is_draft(path: str, target: str, tokens: Mapping[str, int]) -> bool:
    try:
        config = json_object(Path(path) / "config.json")
        check_belongs(path, target, "draft model")
    except (ValueError, UserError):
        return False
    named, own = config.get("architectures"), tokens_of(path)
    causal = isinstance(named, list) and any(str(name).endswith("ForCausalLM") for name in named)
    return causal and (own == tokens or (not own and FIELD in config))


def tokens_of(folder: str) -> dict[str, int]:
    """Token -> id according to tokenizer.json of the folder; {} if that file cannot be read."""
    try:
        written = json_object(Path(folder) / "tokenizer.json")
        vocabulary = written["model"]["vocab"]
        if isinstance(vocabulary, list):
            vocabulary = {entry[0]: index for index, entry in enumerate(vocabulary)}
        return {
            **vocabulary,
            **{token["content"]: token["id"] for token in written["added_tokens"]},
        }
    except (ValueError, LookupError, TypeError):
        return {}


def _parameters(folder: str) -> int:
    """The number of parameters in a folder's weight files; 0 if there are no files or they are damaged."""
    try:
        return sum(
            prod(shape)
            for file in weights_in(folder)
            for name, (shape, _) in entries(file).items()
            if not name.endswith(SCALE)
        )
    except (OSError, SafetensorError):
        return 0
