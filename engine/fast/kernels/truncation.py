"""Applies temperature, top-k and top-p to many rows of logits, without sorting them.

logits [R, V] -> probabilities fp32 [R, V], as ``engine.core.sampling.distribution`` computes them: all tokens whose
logit equals the k-th largest stay; of equal tokens at the edge of top-p, those with the lowest ids stay.

Each threshold is found bit by bit, three bits per pass over the row, which stays in the L2 cache. If a row contains
NaN, all its probabilities are NaN.

Bytes moved, for R rows of a vocabulary of V tokens: the logits are read once from memory and, for each truncation, 12
times from the L2 cache, each time V R elements; 4 V R bytes of probabilities are written. Floating-point operations: 10
to 40 per number and pass.
"""

import torch
from torch import Tensor

from engine.core.sampling import Sampling, distribution
from engine.fast.kernels.judging import is_nan
from engine.fast.kernels.lang import on_gpu, power_of_two, tl, triton

FEWEST_ROWS = 4  # a program works on a row: fewer rows leave the GPU idle, and sorting is as fast


def truncated(logits: Tensor, sampling: Sampling) -> Tensor:
    """The probabilities, fp32 [R, V], after temperature and all truncations of ``sampling``. logits: [R, V]."""
    usual = not sampling.greedy and not sampling.cuts  # other truncations are not in the kernel
    cuts = usual and (sampling.top_k > 0 or sampling.top_p < 1)
    if cuts and on_gpu(logits) and logits.shape[0] >= FEWEST_ROWS and logits.stride(-1) == 1:
        return truncated_triton(logits, sampling)
    return distribution(logits, sampling)


def truncated_triton(logits: Tensor, sampling: Sampling, block: int = 2048) -> Tensor:
    """Do the work of ``truncated`` in the Triton kernel, with one program per row. The last dimension of the logits
    must be contiguous."""
    rows, vocabulary = logits.shape
    block = min(block, power_of_two(vocabulary, 16))
    out = torch.empty(rows, vocabulary, dtype=torch.float32, device=logits.device)
    _truncate_kernel[(rows,)](
        logits, out, 1.0 / sampling.temperature, float(sampling.top_p), sampling.top_k,
        vocabulary, logits.stride(0),
        TOP_K=0 < sampling.top_k < vocabulary, TOP_P=sampling.top_p < 1,
        BLOCK=block, num_warps=16 if block >= 2048 else 4,
    )  # fmt: skip
    return out


@triton.jit
def below_peak(row, peak, inverse, index, vocabulary):
    """The distance of each logit from the largest logit, divided by the temperature: fp32, 0 or more."""
    logit = tl.load(row + index, mask=index < vocabulary, other=float("-inf")).to(tl.float32)
    return (peak - logit) * inverse


@triton.jit
def threshold(
    row, peak, inverse, bound, limit, vocabulary, WEIGHED: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The largest key for which the number of tokens with smaller keys is less than ``limit``. If WEIGHED, their total
    weight is compared instead of their number.

    A token's key is the bit pattern of its ``below_peak``; keys ascend as ``below_peak`` does. Each pass over the row
    finds three bits of the result, beginning with the highest. Tokens with keys above ``bound`` are ignored.
    """
    lane = tl.arange(0, BLOCK)
    step_of = tl.arange(0, 8)
    low = 0
    for turn in range(11):
        shift = tl.maximum(28 - 3 * turn, 0)
        cut = low + (step_of << shift)
        weight = tl.zeros([BLOCK, 8], tl.float32)
        for begin in range(0, vocabulary, BLOCK):
            below = below_peak(row, peak, inverse, begin + lane, vocabulary)
            key = below.to(tl.int32, bitcast=True)
            one = tl.where((key <= bound) & (begin + lane < vocabulary), 1.0, 0.0)
            if WEIGHED:
                one = one * tl.exp(-below)
            weight += tl.where(key[:, None] < cut[None, :], one[:, None], 0.0)
        light = (tl.sum(weight, 0) < limit) & (step_of > 0)
        if turn == 10:  # one bit is left
            light = light & (step_of == 1)
        low += tl.sum(light.to(tl.int32), 0) << shift
    return low


@triton.jit
def total(row, peak, inverse, bound, vocabulary, BLOCK: tl.constexpr):
    """The total weight of the tokens with keys up to ``bound``. The likeliest token has weight 1."""
    lane = tl.arange(0, BLOCK)
    mass = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, vocabulary, BLOCK):
        below = below_peak(row, peak, inverse, begin + lane, vocabulary)
        kept = (below.to(tl.int32, bitcast=True) <= bound) & (begin + lane < vocabulary)
        mass += tl.where(kept, tl.exp(-below), 0.0)
    return tl.sum(mass, 0)


@triton.jit
def highest(row, vocabulary, BLOCK: tl.constexpr):
    """The largest logit of a row; minus infinity if the row contains NaN."""
    lane = tl.arange(0, BLOCK)
    peak = tl.full([BLOCK], float("-inf"), tl.float32)
    broken = tl.zeros([BLOCK], tl.int32)
    for begin in range(0, vocabulary, BLOCK):
        inside = begin + lane < vocabulary
        logit = tl.load(row + begin + lane, mask=inside, other=float("-inf")).to(tl.float32)
        broken = tl.maximum(broken, is_nan(logit).to(tl.int32))
        peak = tl.maximum(peak, tl.where(is_nan(logit), float("-inf"), logit))
    return tl.where(tl.max(broken, 0) > 0, float("-inf"), tl.max(peak, 0))


@triton.jit(do_not_specialize=["top_k"])
def _truncate_kernel(
    logits, out, inverse, top_p, top_k, vocabulary, logits_r,
    TOP_K: tl.constexpr, TOP_P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program per row. Tokens with keys below ``bound`` stay. Of the tokens whose key is ``bound``, only the first
    ``most`` stay."""
    at = tl.program_id(0).to(tl.int64)
    row = logits + at * logits_r
    lane = tl.arange(0, BLOCK)
    peak = highest(row, vocabulary, BLOCK)
    bound = 2139095039  # the bits of the largest finite number: tokens at minus infinity fall out
    most = vocabulary
    if TOP_K:
        limit = top_k.to(tl.float32)
        bound = tl.minimum(
            bound, threshold(row, peak, inverse, bound, limit, vocabulary, False, BLOCK)
        )
    mass = total(row, peak, inverse, bound, vocabulary, BLOCK)
    if TOP_P:
        limit = mass * top_p
        edge = threshold(row, peak, inverse, bound, limit, vocabulary, True, BLOCK)
        bound = min(bound, edge)
        above = total(row, peak, inverse, bound - 1, vocabulary, BLOCK)
        weight = tl.exp(-bound.to(tl.float32, bitcast=True))
        most = tl.maximum(tl.ceil((limit - above) / weight), 1.0).to(tl.int32)
        equal = tl.zeros([BLOCK], tl.int32)
        for begin in range(0, vocabulary, BLOCK):
            key = below_peak(row, peak, inverse, begin + lane, vocabulary).to(
                tl.int32, bitcast=True
            )
            equal += ((key == bound) & (begin + lane < vocabulary)).to(tl.int32)
        most = tl.minimum(most, tl.sum(equal, 0))
        mass = above + most.to(tl.float32) * weight
    seen = 0
    for begin in range(0, vocabulary, BLOCK):
        below = below_peak(row, peak, inverse, begin + lane, vocabulary)
        key = below.to(tl.int32, bitcast=True)
        equal = ((key == bound) & (begin + lane < vocabulary)).to(tl.int32)
        rank = seen + tl.cumsum(equal, 0) - equal
        kept = (key < bound) | ((equal > 0) & (rank < most))
        share = tl.where(kept, tl.exp(-below) / mass, 0.0)
        share = tl.where(peak == float("-inf"), float("nan"), share)
        tl.store(out + at * vocabulary + begin + lane, share, mask=begin + lane < vocabulary)
        seen += tl.sum(equal, 0)
