"""The operations of a step that run in Triton kernels when the model is on a CUDA device.

``attend`` and ``addresses`` return None if no kernel can do the work. The caller then uses the torch operations that it
uses on a CPU. Each reason is logged once.

Letters in shapes: B sequences, R rows of each, H query heads, Hkv key-value heads, D head size, T columns in use, C
columns of the buffers.
"""

import logging
from functools import cache

import torch
from torch import Tensor

from engine.core.transfer import to_device
from engine.fast.kernels.lang import on_gpu
from engine.model.row_mask import RowMask

MOST_ROWS = 512  # a pass over a prompt has no more; torch's SDPA takes more rows
MOST_HEAD = 256
DTYPES = (torch.float32, torch.float16, torch.bfloat16)

_log = logging.getLogger(__name__)


_launched: dict[tuple, bool] = {}
"""Whether the first launch of the attention kernel succeeded, by kind of attention (device, dtype, shapes, options)."""


def takes(tensor: Tensor) -> bool:
    """Whether kernels run on this tensor's device."""
    return on_gpu(tensor)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: RowMask,
    scaling: float | None,
    window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor | None:
    """Attention through the Triton kernel: query [B, H, R, D], key and value [B, Hkv, T, D] -> [B, H, R, D].

    None if the kernel cannot compute it. No tensor of size R x T is made; the mask goes to the device as a few words of
    bits.
    """
    if query.shape[2] > MOST_ROWS:
        return None
    reason = _why_not(query, key, value)
    if reason is not None:
        _say_once(f"Attention runs without the Triton kernel: {reason}.")
        return None
    from engine.fast.kernels import tree_attention

    kind = (query.device, query.dtype, *query.shape[1:], key.shape[1], window is None)
    kind = (*kind, softcap is None, sinks is None)
    if not _launched.get(kind, True):
        return None
    arguments = (query, key, value, mask.bits, scaling, window, softcap, sinks)
    try:
        out = tree_attention.tree_attention(*arguments)
    except Exception as error:  # of the compiler or the driver, or for lack of shared memory
        if kind in _launched:
            raise
        _launched[kind] = False
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        _say_once(f"Attention of {query.shape[2]} rows runs without the Triton kernel. {reason}")
        return None
    _launched[kind] = True
    return out


def _why_not(query: Tensor, key: Tensor, value: Tensor) -> str | None:
    if key.shape != value.shape or query.shape[-1] != key.shape[-1]:
        return "keys and values differ in head size"
    if query.shape[-1] > MOST_HEAD:
        return f"a head of {query.shape[-1]} is larger than {MOST_HEAD}"
    if query.dtype not in DTYPES or key.dtype != query.dtype:
        return f"there is none for {query.dtype} queries and {key.dtype} keys"
    if any(tensor.stride(-1) != 1 for tensor in (query, key, value)):
        return "a head's numbers do not lie side by side"
    return None


def addresses(buffers: list[Tensor]) -> Tensor | None:
    """The addresses of the buffers [B, Hkv, C, D], for ``commit`` and ``move``; valid while the buffers stay in place.

    None if the layers' buffers differ in shape or type, because the kernel cannot move their rows then.
    """
    if not _alike(buffers):
        _say_once("Kept rows are moved layer by layer, because the layers' caches differ.")
        return None
    from engine.fast.kernels.kv_commit import addresses_of

    return addresses_of(buffers)


def commit(buffers: list[Tensor], addresses: Tensor, start: int, rows: list[int]) -> None:
    """Move the columns ``start`` + rows[0], ``start`` + rows[1], ... of all buffers to the columns ``start``, ``start``
    + 1, ..."""
    numbers = torch.tensor([start, len(rows), *rows], dtype=torch.int32)
    moved = to_device(numbers, buffers[0].device)
    move(buffers, addresses, moved[:1], moved[2:][None], moved[1:2])


def move(
    buffers: list[Tensor], addresses: Tensor, start: Tensor, rows: Tensor, count: Tensor
) -> None:
    """Like ``commit``, for several sequences, and with the row numbers in tensors on the device. For the shapes see
    ``engine.fast.kernels.kv_commit``."""
    from engine.fast.kernels.kv_commit import kv_commit

    kv_commit(buffers, start, rows, count, addresses)


def _alike(buffers: list[Tensor]) -> bool:
    first = buffers[0]
    alike = (first.shape, first.stride(), first.dtype, first.device)
    return all((b.shape, b.stride(), b.dtype, b.device) == alike for b in buffers)


@cache
def _say_once(sentence: str) -> None:
    _log.warning(sentence)
