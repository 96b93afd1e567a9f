"""Loading models once a process, and checking that target and drafters fit one another."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import torch

from engine.errors import UserError
from engine.parts.dflash_model import DFlashModel
from engine.target.language_model import LanguageModel

_LOADING = threading.Lock()  # transformers opens one model at a time: meta tensors are global state
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class ModelPaths:
    """Where a run's models lie: directories or hub names; None where there is none."""

    target: str
    draft: str | None = None
    diffusion: str | None = None


@dataclass(frozen=True)
class Models:
    """What a run works with; draft and diffusion only where its drafter needs them.

    folders: where those two were opened, by name.
    """

    target: LanguageModel
    draft: LanguageModel | None = None
    diffusion: DFlashModel | None = None
    folders: Mapping[str, str] = field(default_factory=dict)


def load_models(
    paths: ModelPaths, needs: frozenset[str], dtype: str | None = None, device: str | None = None
) -> Models:
    """Open the target and what the drafter needs; cached a process.

    dtype: float32 | bfloat16 | float16; left out, float32 on CPU and the checkpoint's on a GPU.
    Raises UserError for a missing model, an unknown dtype or device, or vocabularies that differ.
    """
    where, kind = _device(device), _dtype(dtype, device)
    with _LOADING:
        target = _language_model(paths.target, kind, where)
        draft = diffusion = None
        if "draft" in needs:
            draft = _language_model(_given(paths.draft, "draft"), kind, where)
            check_same_vocabulary(target, draft)
        if "diffusion" in needs:
            path = _given(paths.diffusion, "diffusion")
            diffusion = _diffusion(path, target.dtype, where)  # it computes on the target's states
            _check_features(target, diffusion)
        folders = {name: getattr(paths, name) for name in ("draft", "diffusion") if name in needs}
        return Models(target, draft, diffusion, folders)


def _given(path: str | None, what: str) -> str:
    if path is None:
        raise UserError(f"This drafter needs a {what} model for this target; none was given.")
    return path


def _dtype(name: str | None, device: str | None) -> str | None:
    if name is None:
        return "float32" if _device(device) == "cpu" else None
    if name not in DTYPES:
        raise UserError(f"There is no dtype {name!r}; known are: {', '.join(DTYPES)}.")
    return name


def _device(name: str | None) -> str:
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=torch.device(name))
    except (RuntimeError, AssertionError):
        raise UserError(f"There is no device {name!r} on this machine.") from None
    found = torch.device(name)
    if found.type == "cuda" and found.index not in (None, torch.cuda.current_device()):
        # kernels and captured graphs go to the current GPU, and nothing would say that it is another
        raise UserError(f"Choose a GPU by CUDA_VISIBLE_DEVICES={found.index} and the device cuda.")
    return name


@lru_cache(maxsize=8)
def _language_model(path: str, dtype: str | None, device: str) -> LanguageModel:
    return LanguageModel.load(path, DTYPES.get(dtype), device)


@lru_cache(maxsize=4)
def _diffusion(path: str, dtype: torch.dtype, device: str) -> DFlashModel:
    try:
        return DFlashModel.from_pretrained(path, dtype, device)
    except (OSError, KeyError, ValueError, TypeError, json.JSONDecodeError) as error:
        raise UserError(f"There is no diffusion drafter to open at {Path(path).name}.") from error


def check_same_vocabulary(target: LanguageModel, draft: LanguageModel) -> None:
    """Token ids must mean the same to both. Logits padded to different sizes are no matter.

    Raises UserError.
    """
    if target.tokenizer.get_vocab() != draft.tokenizer.get_vocab():
        raise UserError(
            f"The draft {draft.name} has another vocabulary than the target {target.name}; "
            "this drafter needs one tokenizer for both."
        )


def _check_features(target: LanguageModel, diffusion: DFlashModel) -> None:
    config = diffusion.config
    fits = config.hidden_size == target.hidden_size
    if not fits or max(config.target_layer_ids) >= target.layers:
        raise UserError(
            f"This diffusion drafter was trained on another target than {target.name}: "
            "its hidden size or layers do not fit."
        )
