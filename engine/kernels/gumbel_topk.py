"""From logits to draws without replacement: temperature, top-k, top-p and the race, in one launch.

logits [R, V]. With E ~ Exp(1), the k largest values of p / E are k draws from p without
replacement, in the order of drawing (the Gumbel-top-k trick without logarithms; Kool et al. 2019).
Truncation follows engine.sampling: top-k first, then top-p of the remaining tokens. A token stays if
fewer than top_k tokens are strictly larger and if these weigh less than top_p; so equal tokens stay
or go together.

The caller gives the noise, or Philox draws it in the kernel: number v of row r comes from offset
r V + v of ``seed``. At temperature 0 nothing is drawn; the result is the k largest logits with their
plain softmax.

Bytes moved: the logits once from memory, then from the L2 cache: two passes for the softmax, 11 for
each truncation in use, and k for the draws. Noise from the caller (4 V R bytes) is read k times;
writing q, if wanted, is 4 V R bytes more. Floating-point operations: 10 to 40 per number and pass.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.kernels.lang import on_gpu, power_of_two, tl, triton
from engine.kernels.philox import exponential
from engine.kernels.truncation import below_peak, threshold, total


@dataclass(frozen=True)
class Draws:
    """tokens: int32 [R, k], -1 where the distribution has fewer than k tokens. q: fp32 [R, V], the
    distribution drawn from, or None if not wanted. probabilities: fp32 [R, k], q of each token."""

    tokens: Tensor
    probabilities: Tensor
    q: Tensor | None


def gumbel_topk(
    logits: Tensor,
    k: int,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    noise: Tensor | None = None,
    seed: int = 0,
    want_q: bool = False,
) -> Draws:
    """top_k 0 and top_p 1 mean no truncation. noise: Exp(1), fp32 [R, V]; None draws it from seed."""
    run = gumbel_topk_triton if on_gpu(logits) else gumbel_topk_reference
    return run(logits, k, temperature, top_k, top_p, noise, seed, want_q)


def gumbel_topk_reference(
    logits, k, temperature=1.0, top_k=0, top_p=1.0, noise=None, seed=0, want_q=False
) -> Draws:
    """The definition, in fp32."""
    logits = logits.float()
    q = _truncated((logits / (temperature or 1.0)).softmax(-1), logits, top_k, top_p, temperature)
    if temperature == 0:
        scores = logits
    else:
        if noise is None:
            noise = exponential(seed, *logits.shape, device=logits.device)
        scores = torch.where(q > 0, q / noise, -torch.inf)
    order = scores.sort(dim=-1, descending=True, stable=True)
    tokens = torch.where(order.values > -torch.inf, order.indices, -1)[:, :k]
    probabilities = q.gather(-1, tokens.clamp(min=0)).masked_fill(tokens < 0, 0.0)
    return Draws(tokens.to(torch.int32), probabilities, q if want_q else None)


def _truncated(q, logits, top_k, top_p, temperature):
    if temperature == 0:
        return q
    if 0 < top_k < q.shape[-1]:
        kth = logits.topk(top_k, dim=-1).values[..., -1:]
        q = q.masked_fill(logits < kth, 0.0)
        q = q / q.sum(-1, keepdim=True)
    if top_p < 1:
        values = q.sort(dim=-1, descending=True).values
        before = values.cumsum(-1) - values
        least = values.masked_fill(before >= top_p, torch.inf).min(-1, keepdim=True).values
        q = q.masked_fill(q < least, 0.0)
        q = q / q.sum(-1, keepdim=True)
    return q


def gumbel_topk_triton(
    logits, k, temperature=1.0, top_k=0, top_p=1.0, noise=None, seed=0, want_q=False, block=2048
) -> Draws:
    """The kernel, one program per row."""
    rows, vocabulary = logits.shape
    if logits.stride(-1) != 1 or (noise is not None and noise.stride(-1) != 1):
        raise ValueError("the last dimension must be contiguous")
    block = min(block, power_of_two(vocabulary, 16))
    tokens = torch.empty(rows, k, dtype=torch.int32, device=logits.device)
    probabilities = torch.empty(rows, k, dtype=torch.float32, device=logits.device)
    q = probabilities.new_empty(rows, vocabulary) if want_q else None
    sampled = temperature > 0
    given = logits if noise is None else noise
    _race_kernel[(rows,)](
        logits, given, tokens, probabilities, probabilities if q is None else q,
        float(1.0 / temperature) if sampled else 1.0, float(top_p), top_k, k, seed, vocabulary,
        logits.stride(0), given.stride(0),
        SAMPLED=sampled, TOP_K=sampled and 0 < top_k < vocabulary, TOP_P=sampled and top_p < 1,
        GIVEN=noise is not None, WANT_Q=want_q, BLOCK=block, num_warps=16 if block >= 2048 else 4,
    )  # fmt: skip
    return Draws(tokens, probabilities, q)


@triton.jit(do_not_specialize=["top_k", "k", "seed"])
def _race_kernel(
    logits, noise, tokens, probabilities, q, inverse, top_p, top_k, k, seed, vocabulary,
    logits_r, noise_r,
    SAMPLED: tl.constexpr, TOP_K: tl.constexpr, TOP_P: tl.constexpr, GIVEN: tl.constexpr,
    WANT_Q: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program r: the largest logit, the thresholds, the mass, then one pass per draw."""
    at = tl.program_id(0)
    row = logits + at.to(tl.int64) * logits_r
    lane = tl.arange(0, BLOCK)
    highest = tl.full([BLOCK], float("-inf"), tl.float32)
    for begin in range(0, vocabulary, BLOCK):
        inside = begin + lane < vocabulary
        logit = tl.load(row + begin + lane, mask=inside, other=float("-inf")).to(tl.float32)
        highest = tl.maximum(highest, logit)
    peak = tl.max(highest, 0)
    bound = 2139095039  # the largest finite number's bits: tokens at minus infinity fall out
    if TOP_K:
        limit = top_k.to(tl.float32)
        bound = tl.minimum(
            bound, threshold(row, peak, inverse, bound, limit, vocabulary, False, BLOCK)
        )
    if TOP_P:
        limit = total(row, peak, inverse, bound, vocabulary, BLOCK) * top_p
        bound = tl.minimum(
            bound, threshold(row, peak, inverse, bound, limit, vocabulary, True, BLOCK)
        )
    mass = total(row, peak, inverse, bound, vocabulary, BLOCK)
    if WANT_Q:
        for begin in range(0, vocabulary, BLOCK):
            below = below_peak(row, peak, inverse, begin + lane, vocabulary)
            kept = below.to(tl.int32, bitcast=True) <= bound
            share = tl.where(kept, tl.exp(-below) / mass, 0.0)
            place = at.to(tl.int64) * vocabulary + begin + lane
            tl.store(q + place, share, mask=begin + lane < vocabulary)
    last = float("inf")
    last_word = -1
    for rank in range(k):
        best = tl.full([BLOCK], float("-inf"), tl.float32)
        where = tl.full([BLOCK], 2147483647, tl.int32)
        for begin in range(0, vocabulary, BLOCK):
            word = begin + lane
            below = below_peak(row, peak, inverse, word, vocabulary)
            kept = (below.to(tl.int32, bitcast=True) <= bound) & (word < vocabulary)
            score = -below
            if SAMPLED:
                weight = tl.exp(-below)
                kept = kept & (weight > 0)
                if GIVEN:
                    spread = at.to(tl.int64) * noise_r + word
                    e = tl.load(noise + spread, mask=word < vocabulary, other=1.0)
                else:
                    e = -tl.log(1.0 - tl.rand(seed, at * vocabulary + word))
                    e = tl.maximum(e, 1e-20)
                score = weight / e
            after = kept & ((score < last) | ((score == last) & (word > last_word)))
            higher = after & (score > best)
            best = tl.where(higher, score, best)
            where = tl.where(higher, word, where)
        last = tl.max(best, 0)
        last_word = tl.min(tl.where(best == last, where, 2147483647), 0)
        found = last_word < vocabulary
        below = below_peak(row, peak, inverse, tl.where(found, last_word, 0), vocabulary)
        tl.store(tokens + at * k + rank, tl.where(found, last_word, -1))
        tl.store(probabilities + at * k + rank, tl.where(found, tl.exp(-below) / mass, 0.0))
