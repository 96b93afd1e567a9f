"""Tree attention that runs in the Triton kernel where the kernel supports it."""

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
    """A row mask that kernels can also read."""

    @cached_property
    def bits(self) -> AncestorBits:
        """The mask as a few words of bits, in which form GPU kernels read it."""
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
    """Does the work of ``engine.model.attention.tree_attention``. row_mask: a KernelRowMask or a StaticMask."""
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
