"""Prompt lookup on the device: the tokens that followed the last occurrence of the text's end.

context: int32 [B, C], of which the first length[b] tokens are text. The search finds, for each
sequence, the longest n-gram (min_ngram <= n <= max_ngram) that ends the text and also occurs earlier
in it, and the last place where it was continued. This is the answer of NgramIndex.latest.

Bytes moved: 4 length (neighbouring n-grams share their tokens in cache), and 4 per token copied.
Integer comparisons: length max_ngram.
"""

import torch
from torch import Tensor

from engine.kernels.lang import on_gpu, power_of_two, tl, triton


def ngram_match(
    context: Tensor, length: Tensor, min_ngram: int, max_ngram: int, copy: int
) -> tuple[Tensor, Tensor]:
    """(match int32 [B, 2], tokens int32 [B, copy]).

    match: (position of the continuation, n), or (-1, 0). tokens: up to ``copy`` tokens from that
    position on, then -1.
    """
    run = ngram_match_triton if on_gpu(context) else ngram_match_reference
    return run(context, length, min_ngram, max_ngram, copy)


def ngram_match_reference(context, length, min_ngram, max_ngram, copy):
    """The definition: from the longest n and the last position downwards."""
    matches, copies = [], []
    for words, size in zip(context.tolist(), length.tolist(), strict=True):
        text = words[:size]
        match = _latest(text, min_ngram, max_ngram) or (-1, 0)
        copied = text[match[0] : match[0] + copy] if match[1] else []
        matches.append(match)
        copies.append(copied + [-1] * (copy - len(copied)))
    options = {"dtype": torch.int32, "device": context.device}
    return torch.tensor(matches, **options), torch.tensor(copies, **options)


def _latest(text: list[int], shortest: int, longest: int) -> tuple[int, int] | None:
    for size in range(min(longest, len(text) - 1), shortest - 1, -1):
        for position in range(len(text) - 1, size - 1, -1):
            if text[position - size : position] == text[-size:]:
                return position, size
    return None


def ngram_match_triton(context, length, min_ngram, max_ngram, copy, block: int = 2048):
    """The kernel, one program per sequence."""
    batch, capacity = context.shape
    match = torch.empty(batch, 2, dtype=torch.int32, device=context.device)
    tokens = torch.empty(batch, copy, dtype=torch.int32, device=context.device)
    block = min(block, power_of_two(capacity, 16))
    _match_kernel[(batch,)](
        context, length, match, tokens, context.stride(0), min_ngram, max_ngram, copy,
        BLOCK=block, BLOCK_C=power_of_two(copy), num_warps=8 if block >= 1024 else 4,
    )  # fmt: skip
    return match, tokens


@triton.jit(do_not_specialize=["min_ngram", "max_ngram", "copy"])
def _match_kernel(
    context, length, match, tokens, stride, min_ngram, max_ngram, copy,
    BLOCK: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Each lane counts how far back the text before its position agrees with the text's end.

    Of all positions the greatest (count, position) wins, packed into one number.
    """
    sequence = tl.program_id(0)
    text = context + sequence.to(tl.int64) * stride
    size = tl.load(length + sequence)
    best = tl.zeros([BLOCK], tl.int64)
    for begin in range(1, size, BLOCK):
        position = begin + tl.arange(0, BLOCK)
        agree = tl.zeros([BLOCK], tl.int32)
        running = position < size
        for back in range(1, max_ngram + 1):
            here = running & (position >= back)
            theirs = tl.load(text + position - back, mask=here, other=-1)
            ours = tl.load(text + size - back, mask=size >= back, other=-2)
            running = here & (theirs == ours)
            agree += running.to(tl.int32)
        known = (agree >= min_ngram) & (agree > 0)
        packed = agree.to(tl.int64) * 4294967296 + position
        best = tl.maximum(best, tl.where(known, packed, 0))
    winner = tl.max(best, 0)
    found = winner > 0
    count = (winner >> 32).to(tl.int32)
    position = (winner & 4294967295).to(tl.int32)
    tl.store(match + sequence * 2, tl.where(found, position, -1))
    tl.store(match + sequence * 2 + 1, count)
    offset = tl.arange(0, BLOCK_C)
    there = found & (position + offset < size) & (offset < copy)
    copied = tl.load(text + position + offset, mask=there, other=-1)
    tl.store(tokens + sequence * copy + offset, copied, mask=offset < copy)
