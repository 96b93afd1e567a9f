"""Speculative sampling on densities, exact.

Wang et al., Continuous Speculative Decoding for Autoregressive Image Generation (2024). A draft x from q is kept with
probability min(1, p(x) / q(x)), with densities in place of probabilities. A rejected draft is replaced by a point from
the residual, whose density is (p - q)+ up to a factor that cannot be computed in general. That point is drawn without
the factor: take points from p, and keep the first that passes with probability (p - q)+ / p, which never exceeds 1.

The paper draws with diffusion models and aligns the denoising paths of both; here the densities are known, so that
every claim can be checked.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.continuous.mixtures import Mixture, Walk

Replace = Callable[[Mixture, Mixture, int, torch.Generator], tuple[Tensor, int]]
"""(p, q, count, generator) -> points [count, 2] in place of rejected ones, and how many points were tried."""


@dataclass(frozen=True)
class Judged:
    """points: [N, 2], as written. drafts: [N, 2]. kept: [N], whether the point is the draft. tried: points drawn from p
    to replace the rejected ones."""

    points: Tensor
    drafts: Tensor
    kept: Tensor
    tried: int


def from_residual(
    p: Mixture, q: Mixture, count: int, generator: torch.Generator
) -> tuple[Tensor, int]:
    """A point for each rejected draft, drawn from the residual of p and q (see the module). If p and q are equal,
    nothing is rejected, and ``count`` is 0."""
    kept: list[Tensor] = []
    missing, tried = count, 0
    while missing:
        batch = max(64, 2 * missing)
        points = p.draw(batch, generator)
        height = p.density(points)
        passes = (height - q.density(points)).clamp(min=0) / height
        good = torch.rand(batch, generator=generator, dtype=torch.float64) < passes
        places = good.nonzero()[:, 0][:missing]
        tried += batch if len(places) < missing else int(places[-1]) + 1
        missing -= len(places)
        kept.append(points[places])
    return torch.cat(kept) if kept else torch.empty(0, 2, dtype=torch.float64), tried


def from_target(
    p: Mixture, q: Mixture, count: int, generator: torch.Generator
) -> tuple[Tensor, int]:
    """The mistake that the tests plant: rejected drafts are replaced by points from p itself."""
    return p.draw(count, generator), count


def judge(
    p: Mixture,
    q: Mixture,
    drafts: Tensor,
    generator: torch.Generator,
    replaced: Replace = from_residual,
) -> Judged:
    """Keep or replace each of the independent drafts [N, 2] from q."""
    ratio = p.density(drafts) / q.density(drafts)
    kept = torch.rand(len(drafts), generator=generator, dtype=torch.float64) < ratio
    points = drafts.clone()
    points[~kept], tried = replaced(p, q, int((~kept).sum()), generator)
    return Judged(points, drafts, kept, tried)


def write(
    target: Walk,
    draft: Walk,
    length: int,
    ahead: int,
    generator: torch.Generator,
    replaced: Replace = from_residual,
) -> tuple[Tensor, int]:
    """A walk of ``length`` points from the origin by speculative decoding, and how many passes of the target it took.

    In each pass the draft goes ``ahead`` points on, the target gives its densities after each of them, and they are
    judged in order: nothing after the first rejection is kept. If all are kept, the target adds a point. Returns
    [length, 2].
    """
    written, passes = [torch.zeros(2, dtype=torch.float64)], 0
    while len(written) <= length:
        last, passes, whole = written[-1], passes + 1, True
        drafts = [last]
        for _ in range(ahead):
            drafts.append(draft.after(drafts[-1]).draw(1, generator)[0])
        for before, point in itertools.pairwise(drafts):
            verdict = judge(
                target.after(before), draft.after(before), point[None], generator, replaced
            )
            written.append(verdict.points[0])
            if not verdict.kept[0]:
                whole = False
                break
        if whole:
            written.append(target.after(written[-1]).draw(1, generator)[0])
    return torch.stack(written[1 : length + 1]), passes
