"""The chance that rejection sampling keeps one of the drafts under a node, before any is drawn.

Used by the meters only; no rule decides by it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.verifiers.schemes import EXCLUSIVE, Scheme
from engine.verifiers.transport import order_of

STATES, LIKELY = 256, 64
"""About how many sequences of refusals are told apart before the last of several draws without replacement,
and the most tokens by which they are told apart."""


def rejection_keeps(p: Tensor, scheme: Scheme) -> float | None:
    """The chance that recursive rejection sampling keeps a draft. p: [V], of the target.

    For draws without replacement the result is right to about three digits with large vocabularies, where
    refused tokens of small q are counted together; it is None beside fixed tokens.
    """
    p, q = p.double().cpu(), scheme.q.double().cpu()
    p, q = p / p.sum(), q / q.sum()
    if scheme.kind == EXCLUSIVE and scheme.draws > 1:
        return None if scheme.fixed else float(exclusive_keeps(p, q, scheme.draws))
    refused, p = _fixed(1.0, p, scheme.fixed) if scheme.fixed_first else (1.0, p)
    for _ in range(scheme.draws):
        refused *= 1 - float(torch.minimum(p, q).sum())
        p = _normalised((p - q).clamp(min=0), p)
    if not scheme.fixed_first:
        refused, p = _fixed(refused, p, scheme.fixed)
    return 1 - refused


def _fixed(refused: float, p: Tensor, tokens: tuple[int, ...]) -> tuple[float, Tensor]:
    """Judge one-hot guesses in turn: the chance that all so far were refused, and p after that."""
    for token in tokens:
        refused *= 1 - float(p[token])
        left = p.clone()
        left[token] = 0
        p = _normalised(left, p)
    return refused, p


def _normalised(weights: Tensor, otherwise: Tensor) -> Tensor:
    mass = weights.sum()
    return weights / mass if mass > 0 else otherwise


def exclusive_keeps(p: Tensor, q: Tensor, draws: int) -> Tensor:
    """The chance that one of ``draws`` draws without replacement from q [V] is kept.

    After refusals p is (p - c q)+ divided by its sum, and q has lost a mass d, so c and d describe a state;
    with each refusal c grows by that sum over 1 - d. A state also knows which likely tokens were refused,
    because these cannot come again.
    """
    lines = Lines(p, q)
    size = max(1, round(STATES ** (1 / max(1, draws - 1))) - 1)
    likely = q.topk(min(size, LIKELY, len(q))).indices
    c, d, weight = (torch.tensor([x], dtype=torch.float64) for x in (0.0, 0.0, 1.0))
    gone = torch.zeros(1, len(likely), dtype=torch.bool)
    more = torch.cat([q[likely], _usual(p, q, likely)[None]])
    kept = torch.zeros((), dtype=torch.float64)
    for draw in range(draws):
        mass = lines.left(c)
        top = c + mass / (1 - d).clamp(min=1e-12)
        accept = lines.accepted(c, mass, top, d)
        kept += (weight * accept).sum()
        if draw == draws - 1:
            break
        c, d, weight, gone = _refusals(
            p[likely], q[likely], more, (c, d, weight, gone), mass, top, accept
        )
    return kept.clamp(max=1.0)


State = tuple[Tensor, Tensor, Tensor, Tensor]


def _refusals(
    p: Tensor, q: Tensor, more: Tensor, state: State, mass: Tensor, top: Tensor, accept: Tensor
) -> State:
    """The states after one more refusal: one for each likely token, and one for all others together.

    p, q: of the likely tokens. more: the q that each of these refusals takes away."""
    c, d, weight, gone = state
    share = q / (1 - d).clamp(min=1e-12)[:, None]
    target = (p - c[:, None] * q).clamp(min=0)
    target = torch.where(mass[:, None] > 0, target / mass.clamp(min=1e-300)[:, None], share)
    refused = (share - target).clamp(min=0).masked_fill(gone, 0.0)
    others = (1 - accept - refused.sum(-1)).clamp(min=0)
    refused = torch.cat([refused, others[:, None]], -1)
    ways = refused.shape[-1]
    mark = torch.cat([torch.eye(len(q), dtype=torch.bool), gone.new_zeros(1, len(q))])
    new = (weight[:, None] * refused).flatten()
    alive = new > 0
    return (
        top.repeat_interleave(ways)[alive],
        (d[:, None] + more).flatten()[alive],
        new[alive],
        (gone[:, None] | mark).flatten(0, 1)[alive],
    )


def _usual(p: Tensor, q: Tensor, likely: Tensor) -> Tensor:
    """The mean q of a refused token that is not among the likely ones."""
    refused = (q - p).clamp(min=0)
    refused[likely] = 0
    mass = refused.sum()
    return (refused * q).sum() / mass if mass > 0 else mass


class Lines:
    """Sums of p - c q over tokens sorted by p / q, for many c at once."""

    def __init__(self, p: Tensor, q: Tensor) -> None:
        ratio = torch.where(q > 0, p / q, torch.inf)
        order = order_of(ratio)
        self._ratio = ratio[order]
        self._p, self._q = (_behind(row[order]) for row in (p, q))

    def left(self, c: Tensor) -> Tensor:
        """[S], the sum of (p - c q)+."""
        p, q = self._above(c)
        return (p - c * q).clamp(min=0)

    def accepted(self, c: Tensor, mass: Tensor, top: Tensor, d: Tensor) -> Tensor:
        """[S], the sum of min((p - c q)+ / mass, q / (1 - d)); both are equal where p / q is ``top``."""
        (low_p, low_q), (high_p, high_q) = self._above(c), self._above(top)
        between = (low_p - high_p) - c * (low_q - high_q)
        kept = between / mass.clamp(min=1e-300) + high_q / (1 - d).clamp(min=1e-12)
        return torch.where(mass > 0, kept, 1.0).clamp(0.0, 1.0)

    def _above(self, c: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.searchsorted(self._ratio, c, right=True)
        return self._p[places], self._q[places]


def _behind(row: Tensor) -> Tensor:
    """[V + 1], the sum of a row from each place to its end."""
    return torch.nn.functional.pad(row.flip(0).cumsum(0).flip(0), (0, 1))
