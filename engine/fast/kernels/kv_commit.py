"""Moves the accepted rows of a step to the columns after the committed ones, for all layers in one launch.

buffers: the keys and the values of every layer, each [B, Hkv, C, D] (B sequences, Hkv key-value heads, C columns, head
size D), all of the same shape, layout and dtype. In sequence b the step's scratch rows stand after the ``start[b]``
committed columns. The accepted rows are the first ``count[b]`` entries of ``rows[b]``, in ascending order; they move to
the columns start, start + 1, ...

Because the numbers ascend, no row moves to a higher column, nor onto a row that is still to be moved. So the rows are
moved in place, one block at a time, and each block is read before it is written.

Bytes moved: each element of an accepted row is read once and written once, so 2 B Hkv D count elements for each buffer,
less the rows that stay where they are. No floating-point operations.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.fast.kernels.lang import on_gpu, power_of_two, tl, triton

BLOCK_R = 16  # rows a program moves at a time; only one size, because each is compiled separately
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def kv_commit(
    buffers: Sequence[Tensor],
    start: Tensor,
    rows: Tensor,
    count: Tensor,
    addresses: Tensor | None = None,
) -> None:
    """Move the accepted rows of each sequence to the columns from ``start`` on, in place.

    start: int32 [B]. rows: int32 [B, K], the numbers of K rows of each sequence; row 0 is the one in column ``start``.
    count: int32 [B]. addresses: the result of ``addresses_of``, or None to compute it.
    """
    if on_gpu(buffers[0]):
        kv_commit_triton(buffers, start, rows, count, addresses)
    else:
        kv_commit_reference(buffers, start, rows, count)


def kv_commit_reference(buffers, start, rows, count) -> None:
    """Define the result of ``kv_commit`` in torch: gather the accepted rows, then write them."""
    for sequence in range(rows.shape[0]):
        begin, size = int(start[sequence]), int(count[sequence])
        columns = rows[sequence, :size].long() + begin
        for buffer in buffers:
            buffer[sequence, :, begin : begin + size] = buffer[sequence].index_select(1, columns)


def kv_commit_triton(buffers, start, rows, count, addresses: Tensor | None = None) -> None:
    """Do the work of ``kv_commit`` in the Triton kernel."""
    first = buffers[0]
    batch, heads, _, head = first.shape
    if addresses is None:
        addresses = addresses_of(buffers)
    kind = torch.empty(0, dtype=_BITS[first.element_size()], device=first.device)
    _commit_kernel[(len(buffers), batch * heads)](
        addresses, kind, start, rows, count,
        heads, rows.shape[1], *first.stride()[:3], rows.stride(0),
        HEAD=head, BLOCK_D=power_of_two(head), BLOCK_R=BLOCK_R, num_warps=4,
    )  # fmt: skip


def addresses_of(buffers: Sequence[Tensor]) -> Tensor:
    """The address of each buffer, int64 [buffers], on their device. Valid until a buffer is replaced. Raises ValueError
    if the buffers differ in shape, layout or dtype."""
    first = buffers[0]
    alike = (first.shape, first.stride(), first.dtype)
    if any((b.shape, b.stride(), b.dtype) != alike for b in buffers) or first.stride(-1) != 1:
        raise ValueError("the buffers must share shape, layout and dtype")
    return torch.tensor([b.data_ptr() for b in buffers], dtype=torch.int64).to(first.device)


@triton.jit(
    do_not_specialize=["most", "rows_b"],
    do_not_specialize_on_alignment=["start", "rows", "count"],
)
def _commit_kernel(
    addresses, kind, start, rows, count, heads, most, b_b, b_h, b_c, rows_b,
    HEAD: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_R: tl.constexpr,
):  # fmt: skip
    """One program per buffer (axis 0) and per pair of sequence and KV head (axis 1). The pointer ``kind`` is never
    read; it only tells the width of an element."""
    sequence = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    address = tl.multiple_of(tl.load(addresses + tl.program_id(0)), 16)
    buffer = address.to(tl.pointer_type(kind.dtype.element_ty))
    buffer += sequence * b_b + head * b_h
    begin = tl.load(start + sequence)
    kept = tl.minimum(tl.load(count + sequence), most)
    dims = tl.arange(0, BLOCK_D)
    for block in range(0, kept, BLOCK_R):
        index = block + tl.arange(0, BLOCK_R)
        row = tl.load(rows + sequence * rows_b + index, mask=index < kept, other=0)
        moves = (index < kept) & (row != index)
        inside = moves[:, None] & (dims < HEAD)[None, :]
        source = buffer + (begin + row)[:, None].to(tl.int64) * b_c + dims[None, :]
        target = buffer + (begin + index)[:, None].to(tl.int64) * b_c + dims[None, :]
        content = tl.load(source, mask=inside, other=0)
        tl.debug_barrier()  # all of the block has been read before any of it is written
        tl.store(target, content, mask=inside)
        tl.debug_barrier()
