"""The alternatives to our attention kernel: SDPA and FlexAttention."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.fast.kernels.bits import AncestorBits
from engine.fast.kernels.tree_attention import visible


def sdpa(query: Tensor, key: Tensor, value: Tensor, mask: AncestorBits) -> Callable[[], Tensor]:
    """SDPA with a dense mask, which is made once and not timed."""
    dense = visible(mask)[None, None]
    return lambda: F.scaled_dot_product_attention(
        query, key, value, attn_mask=dense, enable_gqa=True
    )


def sdpa_repeated(query: Tensor, key: Tensor, value: Tensor, mask: AncestorBits):
    """As ``sdpa``, with a copy of the KV heads for each query head, as SDPA's fused kernels require if
    there is a mask. The copies are not timed either."""
    groups, dense = query.shape[1] // key.shape[1], visible(mask)[None, None]
    key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
    return lambda: F.scaled_dot_product_attention(query, key, value, attn_mask=dense)


def flex(
    query: Tensor, key: Tensor, value: Tensor, mask: AncestorBits, whole: bool = False
) -> Callable[[], Tensor]:
    """FlexAttention, compiled on a GPU, with a block mask that is made once and not timed.

    whole: its kernel for long texts, where the one for few rows, which it would choose, has no plan.
    """
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    prefix = int(mask.prefix[0])
    dense = visible(mask)[:, prefix:].contiguous()
    last_row, last_column = (size - 1 for size in dense.shape)

    def seen(batch, head, row, column):
        # its tiles reach beyond the tree, and read the mask there, too
        own = (column - prefix).clamp(min=0, max=last_column)
        return (column < prefix) | dense[row.clamp(max=last_row), own]

    rows, columns = query.shape[2], key.shape[2]
    blocks = create_block_mask(seen, None, None, rows, columns, device=query.device)
    attend = torch.compile(flex_attention, dynamic=False) if query.is_cuda else flex_attention
    options = {"FORCE_USE_FLEX_ATTENTION": True} if whole else None
    return lambda: attend(
        query, key, value, block_mask=blocks, enable_gqa=True, kernel_options=options
    )


SDPA = {"sdpa_as_it_is": sdpa, "sdpa_repeated": sdpa_repeated}
FLEX = {"flex_as_it_chooses": flex, "flex_whole": partial(flex, whole=True)}
