"""The highest probability with which any exact rule can keep a draft, given how the drafts are sampled.

Hu et al., Towards Optimal Multi-draft Speculative Decoding (2025). The best coupling of the drafts with the target's
token is an optimal transport problem. Its dual minimises over sets H of tokens: no exact rule keeps a draft with a
probability above

    1 + min over H of (p(H) - probability that all drafts lie in H),

and there is a rule that reaches this bound. For draws with and without replacement the best H consists of the tokens
with the highest q / p, so sorting finds it.
"""

import numpy as np
import torch
from torch import Tensor

from engine.core.schemes import EXCLUSIVE, Scheme

SEPARATE = 48
"""With three or more draws without replacement, this many of q's likeliest tokens are treated one by one. For the other
tokens the bound ignores that a drawn token cannot come again. Together with the quadrature below, the bound is right to
four digits."""

STEP = 0.7
_PLACES = np.arange(-3.0, 21.0, STEP)
TIMES = np.exp(_PLACES - np.exp(-_PLACES))
TIME_WEIGHTS = STEP * TIMES * (1 + np.exp(-_PLACES))
"""Times and weights that turn an integral over all time into a sum (double-exponential quadrature). A token whose clock
has not rung by the last of these times, 1e9, counts as a token whose clock never rings, which can only raise the
bound."""


Numbers = np.ndarray
"""An array of float64. The sums in this module are many small operations, which start faster in NumPy than in torch."""


def transport_bound(p: Tensor, scheme: Scheme) -> float:
    """An upper bound on the probability with which an exact rule keeps one of the tokens drafted after a node; some
    exact rule reaches it. p: [V], the target's law after the node. scheme: how these tokens were drawn."""
    return float(_bound(shares(p), shares(scheme.q), scheme.kind, scheme.draws, scheme.fixed))


def shares(row: Tensor) -> Numbers:
    """A distribution [V] in double precision, divided by its sum."""
    numbers = row.double().cpu().numpy()
    return numbers / numbers.sum()


def bound(p: Tensor, q: Tensor, kind: str, draws: int, fixed: tuple[int, ...] = ()) -> Tensor:
    """The bounds of ``transport_bound``, [...], for many pairs of p and q, [..., V] float64. The drafted tokens are
    ``draws`` draws of this kind from q, and the fixed tokens.

    Raises ValueError for more draws without replacement than q has tokens.
    """
    return torch.from_numpy(np.asarray(_bound(p.numpy(), q.numpy(), kind, draws, fixed)))


def _bound(p: Numbers, q: Numbers, kind: str, draws: int, fixed: tuple[int, ...]) -> Numbers:
    sure = p[..., list(fixed)].sum(-1)
    others = p.copy()
    others[..., list(fixed)] = 0  # H must hold the fixed tokens, or the drafts cannot all lie in it
    ratio = np.divide(others, q, out=np.full_like(others, np.inf), where=q > 0)
    ratio[..., list(fixed)] = -1.0
    order = ratio.argsort(-1)
    others, q = np.take_along_axis(others, order, -1), np.take_along_axis(q, order, -1)
    inside = all_inside(q, draws) if kind == EXCLUSIVE else q.cumsum(-1) ** draws
    first = max(len(fixed) - 1, 0)  # a prefix that lacks a fixed token cannot be H
    least = (others.cumsum(-1) - inside)[..., first:].min(-1) + sure
    return 1 + least.clip(-1.0, 0.0)


def behind(rows: Numbers) -> Numbers:
    """[..., V], for each index of a row of length V, the sum of the row from that index to its end."""
    return rows[..., ::-1].cumsum(-1)[..., ::-1]


def all_inside(q: Numbers, draws: int) -> Numbers:
    """[..., V], for each prefix of q [..., V] the probability that ``draws`` draws without replacement lie in it.

    Give every token a clock with rate q; the draws are the first clocks to ring. They all lie in H unless fewer than
    ``draws`` clocks of H have rung when the first clock outside H rings, which happens at the rate 1 - q(H). Raises
    ValueError if q has fewer than ``draws`` tokens.
    """
    if (q > 0).sum(-1).min() < draws:
        raise ValueError(f"q has fewer than {draws} tokens to draw without replacement")
    outside = behind(q) - q
    if draws == 1:
        return 1 - outside
    if draws == 2:
        others = (q.cumsum(-1) - q) + outside
        fewer = 1 + (q / others).cumsum(-1)
    else:
        fewer = _fewer_rung(q, draws)
    return (1 - outside * fewer).clip(0.0, 1.0)


def _fewer_rung(q: Numbers, draws: int) -> Numbers:
    """[..., V], for each prefix H the integral over t of exp(-(1 - q(H)) t) times the probability that fewer than
    ``draws`` clocks of H have rung by t.

    The unlikely tokens share one clock, which rings again and again (Poisson).
    """
    size = min(SEPARATE, q.shape[-1])
    places = np.sort(np.argpartition(q, q.shape[-1] - size, -1)[..., q.shape[-1] - size :], -1)
    likely = np.zeros(q.shape, np.int64)
    np.put_along_axis(likely, places, 1, -1)
    rest, here = np.where(likely, 0.0, q).cumsum(-1), likely.cumsum(-1)
    q = np.take_along_axis(q, places, -1)
    t = TIMES[:, None]
    rung = _rung(-np.expm1(-q[..., None, :] * t), draws)
    away = np.concatenate([behind(q), np.zeros_like(q[..., :1])], -1)
    away = (away + rest[..., -1:]).clip(min=1e-200)[..., None, :]  # 1 - q of H's likely tokens
    weights = np.exp(-away * t) * TIME_WEIGHTS[:, None]
    weights[..., -1:, :] += np.exp(-away * t[-1]) / away  # nothing new rings after that
    total, power, fewer = np.zeros_like(rest), np.ones_like(rest), rung.sum(0)
    for count in range(draws):
        total += np.take_along_axis((weights * fewer).sum(-2), here, -1) * power
        power *= rest
        weights *= t / (count + 1)
        fewer = fewer - rung[draws - 1 - count]
    return total


def _rung(chances: Numbers, draws: int) -> Numbers:
    """[draws, ..., S + 1]: for j = 0 ... draws - 1 and each prefix of independent events with these probabilities [...,
    S], the probability that j of them happened."""
    rows = np.moveaxis(chances, -1, 0)
    rung = np.zeros((len(rows) + 1, draws, *rows.shape[1:]))
    rung[0, 0] = 1.0
    for before, after, chance in zip(rung, rung[1:], rows, strict=False):
        np.multiply(before, 1 - chance, out=after)
        after[1:] += before[:-1] * chance
    return np.moveaxis(rung, 0, -1)
