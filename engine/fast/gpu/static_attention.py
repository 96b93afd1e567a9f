"""The attention function of models on static buffers, which uses the Triton kernel where the kernel supports the
work."""

from functools import cached_property

import torch
from torch import Tensor
from transformers import AttentionInterface

from engine.fast.gpu import kernel_calls
from engine.fast.kernels.bits import AncestorBits
from engine.model import attention
from engine.model.row_mask import RowMask

NAME = "draftscope_gpu"


class KernelRowMask(RowMask):
    """A row mask that Triton kernels can read too."""

    @cached_property
    def bits(self) -> AncestorBits:
        """The mask as a few words of bits, the form that the kernels read."""
        return AncestorBits.of_sets(
            self._ancestors, self._all_depths, self._committed, self._device
        )


def tree_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    row_mask=None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **others: object,
) -> tuple[Tensor, None]:
    """The attention of ``engine.model.attention.tree_attention``, with the same arguments and result, in the Triton
    kernel if the kernel can compute it. row_mask: a KernelRowMask or a StaticMask."""
    if "watch" not in others and kernel_calls.takes(query):
        out = kernel_calls.attend(
            query, key, value, row_mask, scaling, sliding_window, softcap, s_aux
        )
        if out is not None:
            return out.transpose(1, 2).contiguous(), None
    return attention.tree_attention(
        module,
        query,
        key,
        value,
        attention_mask,
        scaling,
        row_mask,
        sliding_window,
        softcap,
        s_aux,
        **others,
    )


AttentionInterface.register(NAME, tree_attention)
