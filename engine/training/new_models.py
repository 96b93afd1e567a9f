"""The configurations of the family's target and draft models."""

from __future__ import annotations

from torch import nn
from transformers import LlamaConfig

TARGET_LAYERS = 8
MAX_POSITIONS = 1024


def target_config(
    vocabulary_size: int, eos: int, layers: int = TARGET_LAYERS, **changes
) -> LlamaConfig:
    """The configuration of the target; about 14 M parameters at eight layers."""
    return _config(vocabulary_size, eos, layers, (384, 1024, 6, 64), changes)


def draft_config(vocabulary_size: int, eos: int, layers: int = 3, **changes) -> LlamaConfig:
    """The configuration of the draft model: three layers of width 128, about 1.04 M parameters, half of them
    embeddings. This is less than a tenth of the target."""
    return _config(vocabulary_size, eos, layers, (128, 320, 4, 32), changes)


def larger_draft_config(vocabulary_size: int, eos: int, layers: int = 3, **changes) -> LlamaConfig:
    """The configuration of a draft model with about 3.3 M parameters, which is compared with the small draft model."""
    return _config(vocabulary_size, eos, layers, (256, 704, 4, 64), changes)


def _config(
    vocabulary_size: int, eos: int, layers: int, sizes: tuple[int, ...], changes: dict
) -> LlamaConfig:
    """A Llama configuration with two key-value heads. sizes: hidden size, inner size of the MLP, number of heads, head
    size. changes: replace fields of the configuration."""
    names = ("hidden_size", "intermediate_size", "num_attention_heads", "head_dim")
    shape = {**dict(zip(names, sizes, strict=True)), "num_key_value_heads": 2, **changes}
    return LlamaConfig(
        vocab_size=vocabulary_size,
        num_hidden_layers=layers,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=eos,
        pad_token_id=eos,
        attention_bias=False,
        mlp_bias=False,
        dtype="float32",
        **shape,
    )


def attention_shape(config) -> dict[str, int | float]:
    """The heads, norm epsilon and rotary base of a target, under the names that the configs of trained drafters use.
    config: the target's text config in transformers."""
    heads = config.num_attention_heads
    rope = getattr(config, "rope_parameters", None) or {}
    theta = rope.get("rope_theta") or getattr(config, "rope_theta", None) or 10000.0
    return {
        "num_attention_heads": heads,
        "num_key_value_heads": getattr(config, "num_key_value_heads", None) or heads,
        "head_dim": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "rms_norm_eps": getattr(config, "rms_norm_eps", None) or 1e-6,
        "rope_theta": float(theta),
    }


def parameter_count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
