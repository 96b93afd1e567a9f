"""What verify_tree does at one place of the tree, over the vocabulary; jitted, no launches."""

from engine.kernels.lang import tl, triton


@triton.jit
def _better(best, where, score, index):
    """Per lane the higher score and its index; of equals the earlier."""
    higher = score > best
    return tl.where(higher, score, best), tl.where(higher, index, where)


@triton.jit
def _first_of_best(best, where):
    """Across lanes: the lowest index that holds the best score."""
    return tl.min(tl.where(best == tl.max(best, 0), where, 2147483647), 0)


@triton.jit
def argmax(row, noise, vocabulary, RACED: tl.constexpr, BLOCK: tl.constexpr):
    """argmax(row), or argmax(row / noise), in fp32 with the division rounded as IEEE has it."""
    lane = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    where = tl.full([BLOCK], 2147483647, tl.int32)
    for begin in range(0, vocabulary, BLOCK):
        index = begin + lane
        score = tl.load(row + index, mask=index < vocabulary, other=float("-inf")).to(tl.float32)
        if RACED:
            score = tl.div_rn(score, tl.load(noise + index, mask=index < vocabulary, other=1.0))
        best, where = _better(best, where, score, index)
    return _first_of_best(best, where)


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
    """What is left of the law once ``token`` has been refused, before it is normalised.

    A draw can be refused only where q exceeds the law, so that nothing is left of it.
    """
    left = tl.where(by_q, tl.maximum(law - q, 0.0), law)
    return tl.where(index == token, 0.0, left)


@triton.jit
def weigh_draws(
    row, q, law, noise, tokens, draws, accept, p_used, q_used, begin, end, vocabulary,
    has_q, without_replacement, BLOCK: tl.constexpr,
):  # fmt: skip
    """All draws of one place, one pass over the vocabulary each; returns the recovered token.

    A pass takes the refusal before (``last_*``) into the law and sums what this one would leave.
    """
    lane = tl.arange(0, BLOCK)
    scale = 1.0 / _mass(row, vocabulary, BLOCK)
    q_scale = scale * 0.0
    if has_q:
        q_scale = 1.0 / _mass(q, vocabulary, BLOCK)
    pending = begin < 0  # no refusal yet
    last_token = -1
    last_by_q = begin < 0
    last_q_scale = q_scale
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
        best = tl.full([BLOCK], float("-inf"), tl.float64)
        where = tl.full([BLOCK], 2147483647, tl.int32)
        whole_best = tl.full([BLOCK], float("-inf"), tl.float64)
        whole_where = tl.full([BLOCK], 2147483647, tl.int32)
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
                e = tl.load(noise + index, mask=inside, other=1.0).to(tl.float64)
                best, where = _better(best, where, tl.where(inside, left / e, -1.0), index)
                whole = tl.where(inside, now / e, -1.0)
                whole_best, whole_where = _better(whole_best, whole_where, whole, index)
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
    return final
