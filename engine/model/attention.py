"""Tree attention for any transformers model, which calls it through AttentionInterface.

The session decides which rows a row may see (``RowMask``). The model passes this mask through unchanged, and the
attention function adds the settings of the layer: its window, soft cap and sinks.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface

from engine.model.row_mask import RowMask

NAME = "draftscope"


def tree_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    row_mask: RowMask | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    watch: Callable[[int, Tensor, Tensor], None] | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """The attention of one layer: query [1,H,R,D], key and value [1,Hkv,T,D] -> ([1,R,H,D], None). R counts the rows of
    the pass, T the columns: those of the cache and the rows. H and Hkv count heads, D the numbers per head.

    s_aux: the attention sink of each head, [H]. watch: a function that is called with the layer's index, the queries
    (scaled so that a product with a key is a score) and the keys.
    """
    mask = row_mask.within(sliding_window)
    if watch is not None:
        watch(module.layer_idx, query * (scaling or query.shape[-1] ** -0.5), key)
    if softcap is None and s_aux is None:
        grouped = key.shape[1] != query.shape[1]
        out = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=scaling, enable_gqa=grouped
        )
    else:
        out = _explicit(query, key, value, mask, scaling, softcap, s_aux)
    return out.transpose(1, 2).contiguous(), None


def _explicit(query, key, value, mask, scaling, softcap, sinks) -> Tensor:
    """Attention with soft-capped scores and attention sinks, which torch's SDPA does not support. Returns [1,H,R,D]: H
    heads, R rows, D numbers per head."""
    groups = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(groups, dim=1)
    value = value.repeat_interleave(groups, dim=1)
    scores = query @ key.transpose(-1, -2) * (scaling or query.shape[-1] ** -0.5)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    if sinks is not None:
        column = sinks.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        weights = torch.cat([scores, column], -1).float().softmax(-1)[..., :-1]
    else:
        weights = scores.float().softmax(-1)
    return weights.to(value.dtype) @ value


AttentionInterface.register(NAME, tree_attention)
