"""Shapes of the family, and growing a trained shallow target into a deep one."""

from __future__ import annotations

import copy

from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

TARGET_LAYERS = 6
MAX_POSITIONS = 1024


def target_config(
    vocabulary_size: int, eos: int, layers: int = TARGET_LAYERS, **changes
) -> LlamaConfig:
    """About 11 M parameters at six layers."""
    shape = {
        "hidden_size": 384,
        "intermediate_size": 1024,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 64,
    }
    return _config(vocabulary_size, eos, num_hidden_layers=layers, **{**shape, **changes})


def draft_config(vocabulary_size: int, eos: int, layers: int = 2, **changes) -> LlamaConfig:
    """Under a tenth of the target: two layers of 128, about 0.85 M parameters, most of them embeddings."""
    shape = {
        "hidden_size": 128,
        "intermediate_size": 320,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
    }
    return _config(vocabulary_size, eos, num_hidden_layers=layers, **{**shape, **changes})


def _config(vocabulary_size: int, eos: int, **shape) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=vocabulary_size,
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


def grow(model: LlamaForCausalLM, layers: int) -> LlamaForCausalLM:
    """The same model with its stack of layers repeated until there are `layers`.

    Stacking a trained shallow model is a better start than the same time spent on the deep one (G_stack of Du et al.,
    "Stacking Your Transformers", 2024).
    """
    config = copy.deepcopy(model.config)
    old = len(model.model.layers)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[0]] * layers
    grown = LlamaForCausalLM(config)
    grown.model.embed_tokens.load_state_dict(model.model.embed_tokens.state_dict())
    grown.model.norm.load_state_dict(model.model.norm.state_dict())
    for index, layer in enumerate(grown.model.layers):
        layer.load_state_dict(model.model.layers[index % old].state_dict())
    return grown


def parameter_count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
