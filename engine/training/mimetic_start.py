"""Initialises the attention of a small model so that half of its heads attend to rows similar to the query's own row.

Trockman and Kolter, Mimetic Initialization of Self-Attention Layers (2023). In these heads the query weights equal the
key weights, so the word "ring" attends to the patch of a ring before any training. From random weights, a small model
needs most of a short training to learn this. The paper initialises all heads like this, and also values and outputs.
Here the other heads keep their random weights, so that they can learn positions.
"""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def mimetic_start(model: nn.Module) -> None:
    """Initialise the first half of a Llama's key heads, and the query heads that use them, in place: new random key
    weights, and query weights equal to them."""
    size, head = model.config.hidden_size, model.config.head_dim
    for layer in model.model.layers:
        queries, keys = layer.self_attn.q_proj.weight, layer.self_attn.k_proj.weight
        per_key = len(queries) // len(keys)  # query heads per key head
        key_rows = keys[: len(keys) // head // 2 * head]
        nn.init.normal_(key_rows, std=size**-0.5)
        query_rows = key_rows.view(-1, 1, head, size).expand(-1, per_key, -1, -1).flatten(0, 2)
        queries[: len(query_rows)] = query_rows
