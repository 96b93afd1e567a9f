"""Denoisers: block-diffusion drafters that read the target's hidden states."""

from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError

from engine.errors import UserError
from engine.methods.shared.compiled_block_context import compiled_contexts
from engine.methods.shared.dflash_model import DFlashConfig, DFlashModel
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind


def load_denoiser(path: str, dtype: torch.dtype, device: str) -> DFlashModel:
    """Open a block-diffusion drafter and pick its contexts: compiled on the CPU, on static buffers on
    CUDA, through the module elsewhere. Raises what reading its files raises."""
    drafter = DFlashModel.from_pretrained(path, dtype, device)
    kind = drafter.norm.weight.device.type
    if kind == "cpu":
        drafter.make_context = compiled_contexts(drafter)
    elif kind == "cuda":
        from engine.methods.shared.static_block_context import static_contexts

        drafter.make_context = static_contexts(drafter)
    return drafter


@lru_cache(maxsize=4)
def open_denoiser(path: str, dtype, device: str) -> DFlashModel:
    """A denoiser, opened once per process."""
    try:
        return load_denoiser(path, dtype, device)
    except (
        OSError,
        KeyError,
        ValueError,
        TypeError,
        RuntimeError,
        AttributeError,
        SafetensorError,
    ) as error:
        raise UserError(f"There is no diffusion drafter to open at {Path(path).name}.") from error


def _load(path: str, target: LanguageModel, dtype, device: str) -> DFlashModel:
    denoiser = open_denoiser(path, target.dtype, device)  # it computes on the target's states
    config = denoiser.config
    fits = config.hidden_size == target.hidden_size
    if not fits or max(config.target_layer_ids) >= target.layers:
        raise UserError(
            f"This diffusion drafter was trained on another target than {target.name}: "
            "its hidden size or layers do not fit."
        )
    if not 0 <= config.mask_token_id < target.embeddings:
        raise UserError(
            f"This diffusion drafter masks with the token {config.mask_token_id}, which "
            f"{target.name} does not have."
        )
    return denoiser


def tiny_denoiser(target: LanguageModel, opener: Opener) -> DFlashModel:
    config = DFlashConfig(
        vocab_size=target.vocab_size,
        hidden_size=target.hidden_size,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        block_size=4,
        target_layer_ids=(0, target.layers - 1),
        mask_token_id=0,
        num_target_layers=target.layers,
    )
    return DFlashModel(config).eval().requires_grad_(False)


KIND = PartKind("denoiser", "diffusion drafter", _load, tiny_denoiser)
