"""Jitted functions that do the work of ``verify_tree`` at one place of the tree (the root or a node), over the whole
vocabulary.

NaN counts as the largest number, as in ``torch.argmax``, so every index that is returned lies in the vocabulary.
"""

from engine.fast.kernels.lang import tl, triton


@triton.jit
def is_nan(number):
    return number != number  # noqa: PLR0124 - there is no other way to ask


@triton.jit
def _better(best, where, score, index):
    """For each lane, the higher of two scores, and the index of that score. If the scores are equal, ``best`` wins."""
    higher = (score > best) | (is_nan(score) & ~is_nan(best))
    return tl.where(higher, score, best), tl.where(higher, index, where)


@triton.jit
def _first_of_best(best, where):
    """The lowest index, across all lanes, that holds the best score."""
    broken = is_nan(best)
    first_broken = tl.min(tl.where(broken, where, 2147483647), 0)
    highest = tl.max(tl.where(broken, float("-inf"), best), 0)
    first = tl.min(tl.where(best == highest, where, 2147483647), 0)
    return tl.where(first_broken < 2147483647, first_broken, first)


@triton.jit
def argmax(row, noise, vocabulary, RACED: tl.constexpr, BLOCK: tl.constexpr):
    """Return the argmax of the scores, and whether any score is NaN. The scores are those in ``row``, or, if RACED, row
    / noise in fp32, with the division rounded as in IEEE 754."""
    lane = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    where = lane  # in a row of minus infinities the first is the largest
    for begin in range(0, vocabulary, BLOCK):
        index = begin + lane
        score = tl.load(row + index, mask=index < vocabulary, other=float("-inf")).to(tl.float32)
        if RACED:
            score = tl.div_rn(score, tl.load(noise + index, mask=index < vocabulary, other=1.0))
        best, where = _better(best, where, score, index)
    return _first_of_best(best, where), tl.max(is_nan(best).to(tl.int32), 0) > 0


@triton.jit
def _raced(best, where, law, noise, inside, index):
    """Update the best scores law / noise, and their indices, with one tile of the vocabulary. The division is in fp32,
    because on GPUs with few fp64 units an fp64 division over the whole vocabulary would cost more than everything
    else."""
    score = tl.where(inside, tl.div_rn(law.to(tl.float32), noise), float("-inf"))
    return _better(best, where, score, index)


@triton.jit
def _mass(row, vocabulary, BLOCK: tl.constexpr):
    """The sum of a row, in fp64."""
    lane = tl.arange(0, BLOCK)
    mass = tl.zeros([BLOCK], tl.float64)
    for begin in range(0, vocabulary, BLOCK):
        mass += tl.load(row + begin + lane, mask=begin + lane < vocabulary, other=0.0)
    return tl.sum(mass, 0)


@triton.jit
def _refused(law, q, index, token, by_q):
    """The residual of the law after ``token`` was rejected, not yet normalised. by_q: whether the token was drawn from
    q.

    A token can be rejected only where its q exceeds its probability by the law, so its own residual is 0.
    """
    left = tl.where(by_q, tl.maximum(law - q, 0.0), law)
    return tl.where(index == token, 0.0, left)


@triton.jit
def weigh_draws(
    row, q, law, noise, tokens, draws, accept, p_used, q_used, begin, end, vocabulary,
    has_q, without_replacement, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the acceptance probability of each draw of one place, with one pass over the vocabulary per draw. Returns
    the recovered token, and whether the row contains NaN.

    The pass for one draw does two things. It replaces the law by the residual after the rejection of the previous draw
    (``last_*``). And it sums the mass that would remain after the rejection of this draw.
    """
    lane = tl.arange(0, BLOCK)
    scale = 1.0 / _mass(row, vocabulary, BLOCK)
    broken = is_nan(scale)
    q_scale = scale * 0.0
    if has_q:
        q_scale = 1.0 / _mass(q, vocabulary, BLOCK)
    pending = begin < 0  # no refusal yet
    last_token = -1
    last_by_q = begin < 0
    # Not q_scale: Triton does not carry a name through a loop if it stands for q_scale both before the loop and in it.
    last_q_scale = scale * 0.0
    last_scale = scale
    final = -1
    for draw in range(begin, end):
        token = tl.load(tokens + tl.load(draws + draw))
        weight = q_scale * 0.0
        if has_q:
            weight = tl.load(q + token).to(tl.float64) * q_scale
        by_q = weight > 0
        mass = tl.zeros([BLOCK], tl.float64)
        q_mass = tl.zeros([BLOCK], tl.float64)
        p_here = tl.zeros([BLOCK], tl.float64)
        best = tl.full([BLOCK], float("-inf"), tl.float32)
        where = lane
        whole_best = tl.full([BLOCK], float("-inf"), tl.float32)
        whole_where = lane
        for start in range(0, vocabulary, BLOCK):
            index = start + lane
            inside = index < vocabulary
            u = tl.zeros([BLOCK], tl.float64)
            if has_q:
                u += tl.load(q + index, mask=inside, other=0.0)
            now = tl.zeros([BLOCK], tl.float64)
            if draw == begin:
                now += tl.load(row + index, mask=inside, other=0.0).to(tl.float64) * scale
            else:
                now += tl.load(law + index, mask=inside, other=0.0)
                if pending:
                    left = _refused(now, u * last_q_scale, index, last_token, last_by_q)
                    now = left * last_scale
            if draw + 1 < end:
                tl.store(law + index, now, mask=inside)
            left = _refused(now, u * q_scale, index, token, by_q)
            mass += left
            p_here += tl.where(index == token, now, 0.0)
            q_mass += tl.where(index == token, 0.0, u)
            if draw + 1 == end:
                e = tl.load(noise + index, mask=inside, other=1.0)
                best, where = _raced(best, where, left, e, inside, index)
                whole_best, whole_where = _raced(whole_best, whole_where, now, e, inside, index)
        remaining = tl.sum(mass, 0)
        probability = tl.sum(p_here, 0)
        weight = tl.where(by_q, weight, 1.0)
        ratio = probability / weight
        tl.store(accept + draw, tl.where(ratio < 1.0, ratio, 1.0))
        tl.store(p_used + draw, probability)
        tl.store(q_used + draw, weight)
        if draw + 1 == end:
            final = tl.where(
                remaining > 0,
                _first_of_best(best, where),
                _first_of_best(whole_best, whole_where),
            )
        pending = remaining > 0
        last_token = token
        last_by_q = by_q
        last_q_scale = q_scale
        last_scale = 1.0 / tl.where(pending, remaining, 1.0)
        if without_replacement & by_q & (draw + 1 < end):
            tl.debug_barrier()
            tl.store(q + token, 0.0)
            left_q = tl.sum(q_mass, 0)
            q_scale = tl.where(left_q > 0, 1.0 / left_q, 0.0)
        tl.debug_barrier()
    return final, broken
