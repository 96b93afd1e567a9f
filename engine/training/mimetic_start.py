"""Where the attention of a small model starts: half of its heads look for rows that are like their own.

Trockman and Kolter, Mimetic Initialization of Self-Attention Layers (2023). The queries of these heads are their keys, so a
question about a ring looks at the ring before anything is learned; a small model that starts from noise spends most of a short
training in finding this. The paper starts all heads so, and values and outputs as well; here the other heads are left free to
learn places.
"""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def mimetic_start(model: nn.Module) -> None:
    """Start the queries and keys of a Llama anew, in place, in the first half of its heads of keys."""
    size, head = model.config.hidden_size, model.config.head_dim
    for layer in model.model.layers:
        queries, keys = layer.self_attn.q_proj.weight, layer.self_attn.k_proj.weight
        each = len(queries) // len(keys)  # heads of queries for one of keys
        mine = keys[: len(keys) // head // 2 * head]
        nn.init.normal_(mine, std=size**-0.5)
        alike = mine.view(-1, 1, head, size).expand(-1, each, -1, -1).flatten(0, 2)
        queries[: len(alike)] = alike
