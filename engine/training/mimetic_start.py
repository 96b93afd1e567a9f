"""Initialises the attention of a small model so that in half of its heads, each token attends to tokens whose hidden
vectors are similar to its own.

Trockman and Kolter, Mimetic Initialization of Self-Attention Layers (2023). In these heads the query weights equal the
key weights. So the word "ring" attends to the picture's patch with a ring even before any training. From random
weights, a small model would need most of a short training to learn this. The paper initialises all heads like this,
and also the values and outputs. Here half of the heads keep their random weights, so that they can learn positions.
"""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def mimetic_start(model: nn.Module) -> None:
    """Initialise half of the heads of a Llama, in place. The first half of its key heads get new random weights, and
    each query head that uses one of these gets the same weights as its key head."""
    size, head = model.config.hidden_size, model.config.head_dim
    for layer in model.model.layers:
        queries, keys = layer.self_attn.q_proj.weight, layer.self_attn.k_proj.weight
        per_key = len(queries) // len(keys)  # query heads per key head
        key_rows = keys[: len(keys) // head // 2 * head]
        nn.init.normal_(key_rows, std=size**-0.5)
        query_rows = key_rows.view(-1, 1, head, size).expand(-1, per_key, -1, -1).flatten(0, 2)
        queries[: len(query_rows)] = query_rows
