"""A model that starts mimetically looks for rows like its own before it has learned anything."""

import torch

from engine.training.mimetic_start import mimetic_start
from tests.sweep.comparing import random_module
from tests.sweep.tiny_configs import config_of


def test_a_row_looks_most_at_rows_like_itself_in_half_of_the_heads():
    config = config_of("captions")
    config.num_attention_heads, config.num_key_value_heads = 4, 2
    module = random_module(config, 0)
    before = [layer.self_attn.k_proj.weight.clone() for layer in module.model.layers]
    mimetic_start(module)
    head = module.config.head_dim
    rows = torch.randn(40, module.config.hidden_size)
    for layer, keys_before in zip(module.model.layers, before, strict=True):
        queries = layer.self_attn.q_proj(rows).unflatten(-1, (-1, head))
        keys = layer.self_attn.k_proj(rows).unflatten(-1, (-1, head))
        groups, half = queries.shape[1] // keys.shape[1], keys.shape[1] // 2
        assert half
        alike = keys[:, :half].repeat_interleave(groups, 1)
        assert torch.equal(queries[:, : groups * half], alike)
        scores = torch.einsum("rhd,shd->hrs", alike, keys[:, :half].repeat_interleave(groups, 1))
        assert (scores.argmax(-1) == torch.arange(40)).float().mean() > 0.5
        untouched = layer.self_attn.k_proj.weight[half * head :]
        assert torch.equal(untouched, keys_before[half * head :])
