"""The probability that rejection sampling keeps one of the drafts under a node, before they are drawn, and the number
of tokens of a chain that different rules keep.

Used by the meters only; no rule decides by it.
"""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from engine.core.schemes import EXCLUSIVE, Scheme
from engine.rules.transport import Numbers, behind, shares

STATES, LIKELY = 256, 64
"""About how many sequences of refusals are distinguished before the last of several draws without replacement, and the
most tokens by which they are distinguished."""


def rejection_keeps(p: Tensor, scheme: Scheme) -> float | None:
    """The probability that recursive rejection sampling keeps a draft. p: [V], of the target.

    For draws without replacement this probability is right to about three digits with large vocabularies, because
    refused tokens of small q are counted together. None for several draws without replacement beside fixed tokens.
    """
    p, q = shares(p), shares(scheme.q)
    if scheme.kind == EXCLUSIVE and scheme.draws > 1:
        return None if scheme.fixed else exclusive_keeps(p, q, scheme.draws)
    refused, p = _fixed(1.0, p, scheme.fixed) if scheme.fixed_first else (1.0, p)
    for _ in range(scheme.draws):
        refused *= 1 - float(np.minimum(p, q).sum())
        p = _normalised((p - q).clip(min=0), p)
    if not scheme.fixed_first:
        refused, p = _fixed(refused, p, scheme.fixed)
    return 1 - refused


def _fixed(refused: float, p: Numbers, tokens: tuple[int, ...]) -> tuple[float, Numbers]:
    """Judge one-hot drafts of these tokens in turn. Returns the probability that all drafts so far were refused, and p
    after these refusals. refused: the probability that all earlier drafts were refused."""
    for token in tokens:
        refused *= 1 - float(p[token])
        left = p.copy()
        left[token] = 0
        p = _normalised(left, p)
    return refused, p


def _normalised(weights: Numbers, otherwise: Numbers) -> Numbers:
    mass = weights.sum()
    return weights / mass if mass > 0 else otherwise


def exclusive_keeps(p: Numbers, q: Numbers, draws: int) -> float:
    """The probability that one of ``draws`` draws without replacement from q [V] is kept.

    After refusals, p is (p - c q)+ divided by its sum, and q has lost a mass d, so c and d describe a state; with each
    refusal, c grows by that sum divided by 1 - d. A state also records which likely tokens were refused, because these
    cannot come again.
    """
    lines = Lines(p, q)
    size = max(1, round(STATES ** (1 / max(1, draws - 1))) - 1)
    size = min(size, LIKELY, len(q))
    likely = np.argpartition(q, len(q) - size)[len(q) - size :]
    c, d, weight = np.zeros(1), np.zeros(1), np.ones(1)
    gone = np.zeros((1, size), bool)
    more = np.append(q[likely], _usual(p, q, likely))
    kept = 0.0
    for draw in range(draws):
        mass = lines.left(c)
        top = c + mass / (1 - d).clip(min=1e-12)
        accept = lines.accepted(c, mass, top, d)
        kept += float((weight * accept).sum())
        if draw == draws - 1:
            break
        c, d, weight, gone = _refusals(
            p[likely], q[likely], more, (c, d, weight, gone), mass, top, accept
        )
    return min(kept, 1.0)


State = tuple[Numbers, Numbers, Numbers, np.ndarray]


def _refusals(
    p: Numbers,
    q: Numbers,
    more: Numbers,
    state: State,
    mass: Numbers,
    top: Numbers,
    accept: Numbers,
) -> State:
    """The states (``exclusive_keeps``) after one more refusal. Each state leads to one state for every likely token
    that may be refused, and to one for all other tokens together.

    p, q: the laws at the likely tokens. more: the mass of q that each of these refusals removes. For each state, mass:
    the sum of (p - c q)+; top: c after the refusal; accept: the probability that the draw is kept.
    """
    c, d, weight, gone = state
    share = q / (1 - d).clip(min=1e-12)[:, None]
    target = (p - c[:, None] * q).clip(min=0)
    target = np.where(mass[:, None] > 0, target / mass.clip(min=1e-300)[:, None], share)
    refused = (share - target).clip(min=0)
    refused[gone] = 0.0
    others = (1 - accept - refused.sum(-1)).clip(min=0)
    refused = np.concatenate([refused, others[:, None]], -1)
    mark = np.eye(len(q) + 1, len(q), dtype=bool)
    new = (weight[:, None] * refused).ravel()
    (alive,) = new.nonzero()
    return (
        top[alive // len(mark)],
        (d[:, None] + more).ravel()[alive],
        new[alive],
        (gone[:, None] | mark).reshape(-1, len(q))[alive],
    )


def _usual(p: Numbers, q: Numbers, likely: np.ndarray) -> float:
    """The mean q of a refused token that is not among the likely ones."""
    refused = (q - p).clip(min=0)
    refused[likely] = 0
    mass = float(refused.sum())
    return float(refused @ q) / mass if mass > 0 else 0.0


class Lines:
    """Sums of p - c q over the tokens with p / q above c, for S values of c at once. The tokens are sorted by p / q
    only once."""

    def __init__(self, p: Numbers, q: Numbers) -> None:
        ratio = np.divide(p, q, out=np.full_like(p, np.inf), where=q > 0)
        order = ratio.argsort()
        self._ratio = ratio[order]
        self._p, self._q = (np.append(behind(row[order]), 0.0) for row in (p, q))

    def left(self, c: Numbers) -> Numbers:
        """[S], for each of S values of c, the sum of (p - c q)+ over all tokens."""
        p, q = self._above(c)
        return (p - c * q).clip(min=0)

    def accepted(self, c: Numbers, mass: Numbers, top: Numbers, d: Numbers) -> Numbers:
        """[S], for each of S values of c, the sum of min((p - c q)+ / mass, q / (1 - d)) over all tokens. The two
        arguments of the min are equal where p / q is ``top``."""
        (low_p, low_q), (high_p, high_q) = self._above(c), self._above(top)
        between = (low_p - high_p) - c * (low_q - high_q)
        kept = between / mass.clip(min=1e-300) + high_q / (1 - d).clip(min=1e-12)
        return np.where(mass > 0, kept, 1.0).clip(0.0, 1.0)

    def _above(self, c: Numbers) -> tuple[Numbers, Numbers]:
        places = self._ratio.searchsorted(c, side="right")
        return self._p[places], self._q[places]


def chain_keeps(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Three expected numbers of kept tokens of a drawn chain: by rejection sampling, by block verification, and an
    upper bound on any exact rule, as if each depth could be optimised alone. ratios: p / q of the tokens.

    Each token counts with its probability of being kept, given the tokens up to it. Averaged over all draws of the
    chain, these are the expected numbers. Why the third number is a bound: a chain keeps i tokens at most as often as a
    coupling of p's and q's first i tokens makes them equal.
    """
    alone = block = whole = 1.0
    kept = [0.0, 0.0, 0.0]
    for ratio in ratios:
        alone *= min(1.0, ratio)
        block = min(1.0, block * ratio)
        whole *= ratio
        for place, chance in enumerate((alone, block, min(1.0, whole))):
            kept[place] += chance
    return tuple(kept)
