"""Exact speculative sampling on densities.

Wang et al., Continuous Speculative Decoding for Autoregressive Image Generation (2024). A draft x from q is kept with
probability min(1, p(x) / q(x)), where p and q are densities. A rejected draft is replaced by a point from the residual,
whose density is (p - q)+ up to a factor that cannot be computed in general. That point is drawn without the factor:
draw points from p, and keep the first that passes with probability (p - q)+ / p, which never exceeds 1.

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
"""A function (p, q, count, generator) -> points [count, 2] that replace rejected drafts, and the number of points
tried."""


@dataclass(frozen=True)
class Judged:
    """The outcome for N drafts.
    points: [N, 2], the points written. drafts: [N, 2]. kept: [N], whether the point is the draft. tried: the number of
    points drawn from p to replace rejected drafts."""

    points: Tensor
    drafts: Tensor
    kept: Tensor
    tried: int


def from_residual(
    p: Mixture, q: Mixture, count: int, generator: torch.Generator
) -> tuple[Tensor, int]:
    """``count`` points from the residual of p and q (see the module), to replace rejected drafts, and the number of
    points tried. If p and q are equal, they have no residual, and the caller must ask for 0 points: otherwise this
    function never returns."""
    accepted: list[Tensor] = []
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
        accepted.append(points[places])
    return torch.cat(accepted) if accepted else torch.empty(0, 2, dtype=torch.float64), tried


def from_target(
    p: Mixture, q: Mixture, count: int, generator: torch.Generator
) -> tuple[Tensor, int]:
    """Replace rejected drafts by points from p itself: a deliberate mistake, which the tests must detect."""
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
    """A walk of ``length`` points [length, 2] from the origin by speculative decoding, and the number of target passes.

    In each pass the draft model writes ``ahead`` more points, the target gives its density after each of these points,
    and the points are judged in order: nothing after the first rejected one is kept. If all points are kept, the target
    adds one more.
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
