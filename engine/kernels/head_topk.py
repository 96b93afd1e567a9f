"""The k largest logits of a language model's head, without writing all logits to memory.

hidden [R, H]; weight [V, H], the rows of a full or a trimmed head. For a trimmed head ``ids`` [V]
names the token of each row. The result is fp32 values [R, k] in descending order, int32 tokens
[R, k], and the log of the softmax's denominator [R]: exp(value - log) is the token's probability
under that head. Among equal logits the lower row comes first.

Bytes moved: (V H + R H) times the size of an element, and 16 R k V / 128 for the candidates.
Floating-point operations: 2 R V H.
"""

import torch
from torch import Tensor

from engine.kernels.lang import on_gpu, power_of_two, tl, triton

MOST = 64


def head_topk(
    hidden: Tensor, weight: Tensor, k: int, ids: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(values [R, k], tokens [R, k], log_mass [R]); k at most 64 and at most V."""
    run = head_topk_triton if on_gpu(hidden) else head_topk_reference
    return run(hidden, weight, k, ids)


def head_topk_reference(hidden, weight, k, ids=None):
    """The definition, in fp32."""
    logits = hidden.float() @ weight.float().T
    order = logits.sort(dim=-1, descending=True, stable=True)
    rows = order.indices[:, :k]
    tokens = rows if ids is None else ids[rows]
    return order.values[:, :k], tokens.to(torch.int32), logits.logsumexp(-1)


def head_topk_triton(hidden, weight, k, ids=None):
    """One kernel finds candidates in each block of 128 rows of the head (64 in fp32); a second one finds the best of all."""
    rows, width = hidden.shape
    vocabulary = weight.shape[0]
    if not 0 < k <= min(MOST, vocabulary):
        raise ValueError(f"k must lie between 1 and {min(MOST, vocabulary)}, not {k}")
    if hidden.stride(-1) != 1 or weight.stride(-1) != 1:
        raise ValueError("the last dimension must be contiguous")
    full = hidden.element_size() == 4
    block_v = 64 if full else 128
    block_r = power_of_two(min(rows, 64), 16)
    chunks = triton.cdiv(vocabulary, block_v)
    values = hidden.new_empty(rows, chunks, k, dtype=torch.float32)
    indices = hidden.new_empty(rows, chunks, k, dtype=torch.int32)
    logs = hidden.new_empty(rows, chunks, dtype=torch.float32)
    _candidates_kernel[(triton.cdiv(rows, block_r), chunks)](
        hidden, weight, values, indices, logs, rows, vocabulary, width, k, chunks,
        hidden.stride(0), weight.stride(0),
        BLOCK_V=block_v, BLOCK_R=block_r, BLOCK_H=32 if full else 64,
        num_warps=4, num_stages=2 if full else 4,
    )  # fmt: skip
    best = values.new_empty(rows, k)
    tokens = indices.new_empty(rows, k)
    log_mass = logs.new_empty(rows)
    _best_kernel[(rows,)](
        values, indices, logs, indices if ids is None else ids, best, tokens, log_mass,
        chunks, k, HAS_IDS=ids is not None, BLOCK=2048, num_warps=8,
    )  # fmt: skip
    return best, tokens, log_mass


@triton.jit(do_not_specialize=["rows", "k", "chunks"])
def _candidates_kernel(
    hidden, weight, values, indices, logs, rows, vocabulary, width, k, chunks, h_r, w_v,
    BLOCK_V: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """Program (block of rows, chunk): logits [BLOCK_V, BLOCK_R], and the k best of each column."""
    chunk = tl.program_id(1)
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    word = chunk * BLOCK_V + tl.arange(0, BLOCK_V)
    real = row < rows
    acc = tl.zeros([BLOCK_V, BLOCK_R], tl.float32)
    for begin in range(0, width, BLOCK_H):
        dims = begin + tl.arange(0, BLOCK_H)
        inside = (dims < width)[None, :]
        w_at = weight + word[:, None].to(tl.int64) * w_v + dims[None, :]
        w = tl.load(w_at, mask=(word < vocabulary)[:, None] & inside, other=0.0)
        x_at = hidden + row[:, None] * h_r + dims[None, :]
        x = tl.load(x_at, mask=real[:, None] & inside, other=0.0)
        acc = tl.dot(w, tl.trans(x), acc, input_precision="tf32x3")
    acc = tl.where((word < vocabulary)[:, None], acc, float("-inf"))
    peak = tl.max(acc, 0)
    mass = tl.sum(tl.exp(acc - peak[None, :]), 0)
    tl.store(logs + row * chunks + chunk, peak + tl.log(mass), mask=real)
    for rank in range(k):
        best = tl.max(acc, 0)
        where = tl.min(tl.where(acc == best[None, :], word[:, None], 2147483647), 0)
        at = (row * chunks + chunk).to(tl.int64) * k + rank
        tl.store(values + at, best, mask=real)
        tl.store(indices + at, where, mask=real)
        acc = tl.where(word[:, None] == where[None, :], float("-inf"), acc)


@triton.jit(do_not_specialize=["chunks", "k"])
def _best_kernel(
    values, indices, logs, ids, best, tokens, log_mass, chunks, k,
    HAS_IDS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program per row: k times, the best candidate that comes after the previous one."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    peak = tl.full([BLOCK], float("-inf"), tl.float32)
    for begin in range(0, chunks, BLOCK):
        log = tl.load(logs + row * chunks + begin + lane, mask=begin + lane < chunks,
                      other=float("-inf"))  # fmt: skip
        peak = tl.maximum(peak, log)
    top = tl.max(peak, 0)
    mass = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, chunks, BLOCK):
        log = tl.load(logs + row * chunks + begin + lane, mask=begin + lane < chunks,
                      other=float("-inf"))  # fmt: skip
        mass += tl.exp(log - top)
    tl.store(log_mass + row, top + tl.log(tl.sum(mass, 0)))
    last = float("inf")
    last_word = -1
    for rank in range(k):
        score = tl.full([BLOCK], float("-inf"), tl.float32)
        where = tl.full([BLOCK], 2147483647, tl.int32)
        for begin in range(0, chunks * k, BLOCK):
            there = begin + lane < chunks * k
            at = row * chunks * k + begin + lane
            value = tl.load(values + at, mask=there, other=float("-inf"))
            word = tl.load(indices + at, mask=there, other=2147483647)
            after = (value < last) | ((value == last) & (word > last_word))
            value = tl.where(after, value, float("-inf"))
            higher = (value > score) | ((value == score) & after & (word < where))
            score = tl.where(higher, value, score)
            where = tl.where(higher, word, where)
        last = tl.max(score, 0)
        last_word = tl.min(tl.where(score == last, where, 2147483647), 0)
        found = last_word < 2147483647  # not so where the logits are NaN
        token = tl.where(found, last_word, -1)
        if HAS_IDS:
            token = tl.load(ids + last_word, mask=found, other=-1).to(tl.int32)
        tl.store(best + row * k + rank, last)
        tl.store(tokens + row * k + rank, token)
