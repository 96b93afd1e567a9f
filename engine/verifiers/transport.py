"""The highest chance with which any exact rule can keep a draft, given how the drafts are sampled.

Hu et al., Towards Optimal Multi-draft Speculative Decoding (2025). The best coupling of the drafts with
the target's token is an optimal transport problem. Its dual minimises over sets H of tokens: no exact rule
keeps a draft with a probability above

    1 + min over H of (p(H) - chance that all drafts lie in H),

and some rule reaches this bound. For draws with and without replacement the best H consists of the tokens
with the highest q / p, so sorting finds it.
"""

import math

import numpy as np
import torch
from torch import Tensor

from engine.verifiers.schemes import EXCLUSIVE, Scheme

SEPARATE = 48
"""With three or more draws without replacement this many of q's likeliest tokens are treated one by one.
For the other tokens the bound ignores that a drawn one cannot come again. With the sums below it is right
to four digits."""

STEP = 0.7
_PLACES = torch.arange(-3.0, 21.0, STEP, dtype=torch.float64)
TIMES = (_PLACES - (-_PLACES).exp()).exp()
TIME_WEIGHTS = STEP * TIMES * (1 + (-_PLACES).exp())
"""Times and weights that turn an integral over all time into a sum (double-exponential quadrature). A token
whose clock has not rung by the last of these times, 1e9, counts as one that never rings, which can only
raise the bound."""


def transport_bound(p: Tensor, scheme: Scheme) -> float:
    """The bound for the target's p [V] and one node's drafts."""
    p, q = p.double().cpu(), scheme.q.double().cpu()
    return float(bound(p / p.sum(), q / q.sum(), scheme.kind, scheme.draws, scheme.fixed))


def bound(p: Tensor, q: Tensor, kind: str, draws: int, fixed: tuple[int, ...] = ()) -> Tensor:
    """[...] for p and q [..., V] float64. The drafts: ``draws`` of this kind from q, and the fixed tokens.

    Raises ValueError for more draws without replacement than q has tokens.
    """
    sure = p[..., list(fixed)].sum(-1)
    others = p.clone()
    others[..., list(fixed)] = 0  # H must hold the fixed tokens, or the drafts cannot all lie in it
    ratio = torch.where(q > 0, others / q, math.inf)
    ratio[..., list(fixed)] = -1.0
    order = order_of(ratio)
    others, q = others.gather(-1, order), q.gather(-1, order)
    inside = all_inside(q, draws) if kind == EXCLUSIVE else q.cumsum(-1) ** draws
    first = max(len(fixed) - 1, 0)  # a prefix that lacks a fixed token cannot be H
    least = (others.cumsum(-1) - inside)[..., first:].amin(-1) + sure
    return 1 + least.clamp(-1.0, 0.0)


def order_of(values: Tensor) -> Tensor:
    """[..., V], the places that sort values [..., V] in ascending order. numpy sorts a row several times
    as fast as torch."""
    return torch.from_numpy(np.argsort(values.numpy(), axis=-1))


def all_inside(q: Tensor, draws: int) -> Tensor:
    """[..., V], for each prefix of q [..., V] the chance that ``draws`` draws without replacement lie in it.

    Give every token a clock with rate q; the draws are the first clocks to ring. They all lie in H unless
    fewer than ``draws`` clocks of H have rung when the first clock outside H rings, which happens at the
    rate 1 - q(H).
    """
    if int((q > 0).sum(-1).min()) < draws:
        raise ValueError(f"q has fewer than {draws} tokens to draw without replacement")
    behind = q.flip(-1).cumsum(-1).flip(-1)
    outside = behind - q
    if draws == 1:
        return 1 - outside
    if draws == 2:
        others = (q.cumsum(-1) - q) + outside
        fewer = 1 + (q / others).cumsum(-1)
    else:
        fewer = _fewer_rung(q, draws)
    return (1 - outside * fewer).clamp(0.0, 1.0)


def _fewer_rung(q: Tensor, draws: int) -> Tensor:
    """[..., V], for each prefix H the integral over t of exp(-(1 - q(H)) t) times the chance that fewer
    than ``draws`` clocks of H have rung by t.

    The unlikely tokens share one clock, which rings again and again (Poisson).
    """
    size = min(SEPARATE, q.shape[-1])
    places = q.topk(size, dim=-1).indices.sort(-1).values
    likely = torch.zeros_like(q).scatter_(-1, places, 1.0)
    rest, here = (q * (1 - likely)).cumsum(-1), likely.cumsum(-1).long()
    q = q.gather(-1, places)
    t = TIMES[:, None]
    rung = _rung(-torch.expm1(-q[..., None, :] * t), draws)
    away = torch.nn.functional.pad(q.flip(-1).cumsum(-1).flip(-1), (0, 1))
    away = (away + rest[..., -1:]).clamp(min=1e-200)[..., None, :]  # 1 - q of the likely ones in H
    weights = torch.exp(-away * t) * TIME_WEIGHTS[:, None]
    weights[..., -1:, :] += torch.exp(-away * t[-1]) / away  # nothing new rings after that
    found, power, fewer = torch.zeros_like(rest), torch.ones_like(rest), sum(rung)
    for count in range(draws):
        found.addcmul_((weights * fewer).sum(-2).gather(-1, here), power)
        power *= rest
        weights *= t / (count + 1)
        fewer = fewer - rung[draws - 1 - count]
    return found


def _rung(chances: Tensor, draws: int) -> list[Tensor]:
    """For each j = 0 ... draws - 1 a tensor [..., S + 1]: for each prefix of independent events with these
    chances [..., S], the chance that j of them happened."""
    rows = np.moveaxis(chances.numpy(), -1, 0)
    found = np.zeros((len(rows) + 1, draws, *rows.shape[1:]))
    found[0, 0] = 1.0
    for place, chance in enumerate(rows):
        before, after = found[place], found[place + 1]
        np.multiply(before, 1 - chance, out=after)
        after[1:] += before[:-1] * chance
    return [torch.from_numpy(np.moveaxis(found[:, count], 0, -1)) for count in range(draws)]
