"""Attention of a tree of queries to a long prefix and to one another.

query [B, H, R, D]: B sequences, H query heads, R rows, head size D. key, value [B, Hkv, C, D], with Hkv key-value heads
and C columns: a cache whose first ``prefix`` columns are committed and whose next S columns hold the scratch rows. The
queries belong to the last R scratch rows, unless the mask holds depths for the queries (``AncestorBits.own``). The
kernels read ``prefix`` on the device, so one captured graph serves every length. The output is [B, H, R, D], in memory
[B, R, H, D].

The columns are divided into parts: the scratch rows (the tree) are one part, and the prefix is cut into further parts.
Each program computes the attention to one part. The partial results are joined by their log-sum-exps (the decomposition
of Hydragen, Juravsky et al. 2024, and the split of Flash-Decoding). A program holds the rows of all query heads of a KV
head, so that a tile of keys and values is read once for all of them.

Bytes moved: 2 B Hkv (prefix + S) D (keys, values) + 2 B H R D (queries, output), times the size of an element. The
partial results, in fp32, add 8 B H R D bytes for each part; they stay in the L2 cache. Floating-point operations: 4 B H
R (prefix + S) D.
"""

import torch
from torch import Tensor

from engine.fast.kernels.attention_plan import Plan, plan
from engine.fast.kernels.bits import AncestorBits, unpack
from engine.fast.kernels.hardware import HOPPER, Gpu
from engine.fast.kernels.lang import on_gpu, power_of_two, tl, triton

LOG2_E = 1.4426950408889634


def tree_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: AncestorBits,
    scale: float | None = None,
    window: int | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """softmax(mask(cap(scale q k))) v. An attention sink takes its share of the softmax and adds nothing to the output.

    scale: None means D^-1/2. window: a row sees columns that are less than this many positions before it. softcap: the
    number c with which scores s become c tanh(s / c). sinks: [H], the score of each head's sink. If a row sees nothing,
    its output is 0.
    """
    run = tree_attention_triton if on_gpu(query) else tree_attention_reference
    return run(query, key, value, mask, scale, window, softcap, sinks)


def tree_attention_reference(
    query, key, value, mask, scale=None, window=None, softcap=None, sinks=None
):
    """Define the result of ``tree_attention`` in torch: one sequence after another, in fp32 (fp64 for fp64 queries)."""
    groups = query.shape[1] // key.shape[1]
    outputs = []
    for index in range(query.shape[0]):
        prefix = int(mask.prefix[index])
        end = prefix + mask.scratch
        exact = torch.promote_types(query.dtype, torch.float32)
        q = query[index].to(exact)
        k = key[index, :, :end].to(exact).repeat_interleave(groups, 0)
        v = value[index, :, :end].to(exact).repeat_interleave(groups, 0)
        scores = q @ k.transpose(1, 2) * (scale or query.shape[-1] ** -0.5)
        if softcap:
            scores = torch.tanh(scores / softcap) * softcap
        scores = scores.masked_fill(~visible(mask, index, window), float("-inf"))
        if sinks is not None:
            column = sinks.to(exact).view(-1, 1, 1).expand(-1, scores.shape[1], 1)
            weights = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
        else:
            weights = scores.softmax(-1).nan_to_num(0.0)
        outputs.append((weights @ v).to(query.dtype))
    return torch.stack(outputs)


def visible(mask: AncestorBits, index: int = 0, window: int | None = None) -> Tensor:
    """The dense mask of the sequence with this index, bool [R, prefix + S]."""
    prefix, rows = int(mask.prefix[index]), mask.rows
    scratch_mask = unpack(mask.words[index], mask.scratch)
    dense = torch.cat([scratch_mask.new_ones(rows, prefix), scratch_mask], 1)
    if window is None:
        return dense
    depths = mask.depths[index].long()
    columns = torch.cat([torch.arange(prefix, device=depths.device), prefix + depths])
    distance = (prefix + mask.row_depths[index].long())[:, None] - columns[None, :]
    return dense & (distance < window)


def tree_attention_triton(
    query,
    key,
    value,
    mask,
    scale=None,
    window=None,
    softcap=None,
    sinks=None,
    cut: Plan | None = None,
):
    """Do the work of ``tree_attention`` in two kernels. query, key and value must be contiguous in their last
    dimension.

    cut: how the work is divided; with None, this function plans it. Raises ValueError if shapes do not fit together.
    """
    batch, heads, rows, head = query.shape
    kv_heads = key.shape[1]
    groups = heads // kv_heads
    _check(query, key, value, mask)
    cut = cut or _plan_here(query, groups, batch * kv_heads, mask.longest, window)
    parts = cut.splits + 1
    partial = query.new_empty(batch, heads, rows, parts, head, dtype=torch.float32)
    logs = query.new_empty(batch, heads, rows, parts, dtype=torch.float32)
    blocks = triton.cdiv(rows * groups, cut.block_rows)
    row_depths, width = mask.row_depths, power_of_two(head, 16)
    _parts_kernel[(blocks, parts, batch * kv_heads)](
        query, key, value, mask.words, mask.depths, row_depths, mask.prefix, partial, logs,
        (scale or head**-0.5) * LOG2_E, (softcap or 1.0) * LOG2_E,
        rows, mask.scratch, groups, kv_heads, cut.splits, window or 0,
        *query.stride()[:3], *key.stride()[:3], *value.stride()[:3],
        *mask.words.stride()[:2], mask.depths.stride(0), row_depths.stride(0),
        HEAD=head, BLOCK_D=width,
        BLOCK_M=cut.block_rows, BLOCK_N=cut.block_columns,
        CHUNK=min(cut.chunk or width, width), WINDOWED=window is not None, CAPPED=bool(softcap),
        num_warps=cut.warps, num_stages=cut.stages,
    )  # fmt: skip
    out = query.new_empty(batch, rows, heads, head)
    _join_kernel[(batch * heads * rows,)](
        partial, logs, query if sinks is None else sinks, out,
        heads, rows, parts,
        HEAD=head, BLOCK_D=width, BLOCK_P=power_of_two(parts),
        SINKS=sinks is not None, num_warps=4,
    )  # fmt: skip
    return out.transpose(1, 2)


def _check(query: Tensor, key: Tensor, value: Tensor, mask: AncestorBits) -> None:
    if query.shape[-1] != key.shape[-1] or key.shape != value.shape:
        raise ValueError("keys and values must have the queries' head dimension")
    if query.shape[1] % key.shape[1]:
        raise ValueError("the query heads must be a multiple of the key heads")
    if mask.rows != query.shape[2] or mask.words.shape[0] != query.shape[0]:
        raise ValueError("the mask belongs to another number of rows or sequences")
    if any(tensor.stride(-1) != 1 for tensor in (query, key, value, mask.words, mask.depths)):
        raise ValueError("the last dimension must be contiguous")


def _plan_here(query: Tensor, groups: int, pairs: int, longest: int, window: int | None) -> Plan:
    if window is not None:
        longest = min(longest, window)
    gpu = Gpu.of(query.device) if query.is_cuda else HOPPER
    return plan(query.shape[2], groups, pairs, query.shape[3], query.element_size(), longest, gpu)


@triton.jit
def _rows(at, begin, there, FULL: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr):
    """Load WIDTH numbers of each row, from dimension ``begin`` on. at: the addresses of the rows. Rows for which
    ``there`` is false, and dimensions beyond HEAD, are 0."""
    dims = begin + tl.arange(0, WIDTH)
    if FULL:
        numbers = tl.load(at[:, None] + dims[None, :])
    else:
        inside = there[:, None] & (dims < HEAD)[None, :]
        numbers = tl.load(at[:, None] + dims[None, :], mask=inside, other=0.0)
    return numbers


@triton.jit
def _scores(
    q, q_at, real, key_at, there,
    FULL: tl.constexpr, HEAD: tl.constexpr, BLOCK_D: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The products q k of one tile. With a CHUNK smaller than BLOCK_D, q is read again a few dimensions at a time,
    because in fp32 a wide head of q, split in two for tf32x3, would fill half the registers of every warp."""
    if CHUNK == BLOCK_D:
        k = _rows(key_at, 0, there, FULL, HEAD, BLOCK_D)
        scores = tl.dot(q, tl.trans(k), input_precision="tf32x3")
    else:
        scores = tl.zeros([q_at.shape[0], key_at.shape[0]], tl.float32)
        for begin in range(0, BLOCK_D, CHUNK):
            few = _rows(q_at, begin, real, False, HEAD, CHUNK)
            k = _rows(key_at, begin, there, FULL, HEAD, CHUNK)
            scores = tl.dot(few, tl.trans(k), scores, input_precision="tf32x3")
    return scores


@triton.jit
def _fold(
    q, q_at, real, key_at, value_at, there, seen, scale, cap, acc, peak, total,
    WHOLE: tl.constexpr, MASKED: tl.constexpr, CAPPED: tl.constexpr,
    HEAD: tl.constexpr, BLOCK_D: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Add one tile of N columns to the running softmax (base 2) of M rows.

    there: bool [N], whether each column exists; with WHOLE, all columns do. seen: bool [M, N], the columns that each
    row sees; without MASKED, each row sees all columns.
    """
    full: tl.constexpr = WHOLE and HEAD == BLOCK_D
    scores = _scores(q, q_at, real, key_at, there, full, HEAD, BLOCK_D, CHUNK) * scale
    if CAPPED:  # c tanh(s / c) = c - 2 c / (exp(2 s / c) + 1); all in units of log2 e
        scores = cap - 2.0 * cap / (tl.exp2(scores * (2.0 * 1.4426950408889634) / cap) + 1.0)
    if MASKED:
        scores = tl.where(seen, scores, float("-inf"))
    higher = tl.maximum(peak, tl.max(scores, 1))
    base = tl.where(higher == float("-inf"), 0.0, higher)
    weights = tl.exp2(scores - base[:, None])
    shrink = tl.exp2(peak - base)
    total = total * shrink + tl.sum(weights, 1)
    acc = acc * shrink[:, None]
    v = _rows(value_at, 0, there, full, HEAD, BLOCK_D)
    acc = tl.dot(weights.to(v.dtype), v, acc, input_precision="tf32x3")
    return acc, higher, total


# Numbers that differ from tree to tree must not make Triton compile anew: sizes, and the places where the mask's parts
# begin in their buffer.
_OF_A_TREE = ["rows", "scratch", "splits", "window", "w_b", "w_r", "d_b", "r_b"]


@triton.jit(
    do_not_specialize=_OF_A_TREE,
    do_not_specialize_on_alignment=["words", "depths", "row_depths", "prefix"],
)
def _parts_kernel(
    query, key, value, words, depths, row_depths, prefix, partial, logs,
    scale, cap, rows, scratch, groups, kv_heads, splits, window,
    q_b, q_h, q_r, k_b, k_h, k_c, v_b, v_h, v_c, w_b, w_r, d_b, r_b,
    HEAD: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    CHUNK: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr,
):  # fmt: skip
    """Each program computes the attention of BLOCK_M packed rows to one part of the columns. Axis 0 of the launch
    counts the blocks of packed rows, axis 1 the parts, and axis 2 the pairs of a sequence and a KV head.

    The packed rows of a KV head are the rows of all query heads that share it: packed row m is row m % rows of the
    query head with the number m // rows among these heads. Part 0 is the tree, and the other parts are those of the
    prefix. The program writes the normalised output for its part, and the part's log-sum-exp (base 2).
    """
    part = tl.program_id(1) - 1
    sequence = (tl.program_id(2) // kv_heads).to(tl.int64)
    kv_head = tl.program_id(2) % kv_heads
    packed = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    real = packed < rows * groups
    row = packed % rows
    head = kv_head * groups + packed // rows
    q_at = query + sequence * q_b + head * q_h + row * q_r
    q = _rows(q_at, 0, real, False, HEAD, BLOCK_D)  # not used, and not read, with a CHUNK

    committed = tl.load(prefix + sequence)
    depth = tl.load(row_depths + sequence * r_b + row, mask=real, other=0)
    keys = key + sequence * k_b + kv_head.to(tl.int64) * k_h
    values = value + sequence * v_b + kv_head.to(tl.int64) * v_h
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)

    if part >= 0:
        first = 0
        if WINDOWED:  # the shallowest row stands at the end of the prefix
            first = tl.maximum(committed + 1 - window, 0)
        chunk = tl.cdiv(tl.cdiv(committed - first, splits), BLOCK_N) * BLOCK_N
        start = tl.minimum(first + part * chunk, committed)
        end = tl.minimum(start + chunk, committed)
        whole = start + (end - start) // BLOCK_N * BLOCK_N
        for begin in range(start, whole, BLOCK_N):
            column = begin + tl.arange(0, BLOCK_N)
            seen = (committed + depth)[:, None] - column[None, :] < window
            acc, peak, total = _fold(
                q, q_at, real, keys + column * k_c, values + column * v_c, column < end,
                seen, scale, cap, acc, peak, total, True, WINDOWED, CAPPED, HEAD, BLOCK_D, CHUNK,
            )  # fmt: skip
        if whole < end:
            column = whole + tl.arange(0, BLOCK_N)
            there = column < end
            seen = tl.broadcast_to(there[None, :], [BLOCK_M, BLOCK_N])
            if WINDOWED:
                seen = seen & ((committed + depth)[:, None] - column[None, :] < window)
            acc, peak, total = _fold(
                q, q_at, real, keys + column * k_c, values + column * v_c, there,
                seen, scale, cap, acc, peak, total, False, True, CAPPED, HEAD, BLOCK_D, CHUNK,
            )  # fmt: skip
    else:
        for word in range(tl.cdiv(scratch, 32)):  # 32 columns, one word of bits per row
            column = word * 32 + tl.arange(0, 32)
            there = column < scratch
            bits = tl.load(words + sequence * w_b + row * w_r + word, mask=real, other=0)
            seen = ((bits[:, None] >> tl.arange(0, 32)[None, :]) & 1) != 0
            seen = seen & there[None, :]
            if WINDOWED:
                theirs = tl.load(depths + sequence * d_b + column, mask=there, other=0)
                seen = seen & (depth[:, None] - theirs[None, :] < window)
            place = committed + column
            acc, peak, total = _fold(
                q, q_at, real, keys + place * k_c, values + place * v_c, there,
                seen, scale, cap, acc, peak, total, False, True, CAPPED, HEAD, BLOCK_D, CHUNK,
            )  # fmt: skip

    mass = tl.where(total > 0, total, 1.0)
    heads = groups * kv_heads
    flat = ((sequence * heads + head) * rows + row) * (splits + 1) + part + 1
    dims = tl.arange(0, BLOCK_D)
    inside = real[:, None] & (dims < HEAD)[None, :]
    tl.store(partial + flat[:, None] * HEAD + dims[None, :], acc / mass[:, None], mask=inside)
    tl.store(logs + flat, tl.where(total > 0, peak + tl.log2(mass), float("-inf")), mask=real)


@triton.jit(do_not_specialize=["rows", "parts"])
def _join_kernel(
    partial, logs, sinks, out, heads, rows, parts,
    HEAD: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_P: tl.constexpr, SINKS: tl.constexpr,
):  # fmt: skip
    """Each program joins the parts for one row of one head of one sequence. It writes the mean of the parts' outputs,
    weighted by the parts' shares of the softmax mass."""
    flat = tl.program_id(0).to(tl.int64)
    row = flat % rows
    head = flat // rows % heads
    sequence = flat // rows // heads
    part = tl.arange(0, BLOCK_P)
    dims = tl.arange(0, BLOCK_D)
    log = tl.load(logs + flat * parts + part, mask=part < parts, other=float("-inf"))
    peak = tl.max(log, 0)
    sink = float("-inf")
    if SINKS:
        sink = tl.load(sinks + head).to(tl.float32) * 1.4426950408889634
        peak = tl.maximum(peak, sink)
    peak = tl.where(peak == float("-inf"), 0.0, peak)
    share = tl.exp2(log - peak)
    total = tl.sum(share, 0)
    if SINKS:
        total += tl.exp2(sink - peak)
    inside = (part < parts)[:, None] & (dims < HEAD)[None, :]
    at = (flat * parts + part)[:, None] * HEAD + dims[None, :]
    rows_of_parts = tl.load(partial + at, mask=inside, other=0.0)
    mean = tl.sum(rows_of_parts * share[:, None], 0) / tl.where(total > 0, total, 1.0)
    target = out + ((sequence * rows + row) * heads + head) * HEAD + dims
    tl.store(target, mean.to(out.dtype.element_ty), mask=dims < HEAD)
