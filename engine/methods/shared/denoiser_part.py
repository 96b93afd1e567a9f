"""Denoisers: block-diffusion drafters that take the target's hidden states as input."""

from functools import lru_cache
from pathlib import Path

import torch

from engine.methods.shared.compiled_block_context import compiled_contexts, compiled_head
from engine.methods.shared.dflash_model import DFlashModel
from engine.model.language_model import LanguageModel
from engine.parts.files import in_dtype
from engine.parts.kinds import PartKind


@lru_cache(maxsize=4)
def open_denoiser(path: str, dtype: torch.dtype, device: str) -> DFlashModel:
    """Return the denoiser in a folder; each folder is opened only once per process. The denoiser's contexts run
    compiled passes on a CPU, captured passes on static buffers on CUDA, and the plain module on other devices. Raises
    UserError if it cannot be opened."""
    drafter = in_dtype(DFlashModel.read(path), dtype).to(device).requires_grad_(False)
    kind = drafter.norm.weight.device.type
    if kind == "cpu":
        drafter.make_context = compiled_contexts(drafter)
        drafter.make_head = compiled_head
    elif kind == "cuda":
        from engine.methods.shared.static_block_context import static_contexts

        drafter.make_context = static_contexts(drafter)
    return drafter


def _load(path: str, target: LanguageModel, dtype, device: str) -> DFlashModel:
    denoiser = open_denoiser(path, target.dtype, device)  # it computes on the target's states
    denoiser.settle({}, target, Path(path).name)
    return denoiser


KIND = PartKind(DFlashModel.key, DFlashModel.noun, _load, DFlashModel.tiny)
