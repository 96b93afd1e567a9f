"""The figures on acceptance on densities: clouds of points, acceptance against the overlap integral, and two-sample
tests."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from engine.continuous.acceptance import Judged, Replace, from_residual, from_target, judge, write
from engine.continuous.mixtures import DRAFT, TARGET, Walk, overlap
from engine.core.exhibits import Cloud, Clouds, Curve, Exhibit, Panel, Series, Table

SHIFTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
DRAFTS = 20_000  # the drafts judged for each measured acceptance
TESTED = 800  # the points of each cloud in the two-sample tests
SHOWN = 160  # the points of each cloud in the picture
LENGTH, AHEAD = 400, 4  # the points of the walk, and of each draft
WALKS = 120  # the walks that are compared with plain walks in a test


def p_value(one: Tensor, other: Tensor, permutations: int = 499, seed: int = 0) -> float:
    """The p-value of a permutation test on whether two clouds have the same law (Székely and Rizzo, Energy statistics,
    2013). If they have, it is at most alpha with probability at most alpha, for any numbers of points and permutations.

    one: N points of D dimensions, [N, D]. other: M points, [M, D]. The p-value is the share of permutations whose
    energy distance is at least as large as that of the original clouds, which count as one of the permutations.
    """
    points = torch.cat([one, other])
    gaps = torch.cdist(points, points)
    sizes = len(one), len(other)
    # The energy distance is -w' G w, with w = 1/N on one cloud and -1/M on the other.
    signed = torch.cat(
        [torch.full((sizes[0],), 1 / sizes[0]), torch.full((sizes[1],), -1 / sizes[1])]
    )
    signed = signed.to(points.dtype)
    generator = torch.Generator().manual_seed(seed)
    orders = torch.rand(permutations, len(points), generator=generator).argsort(-1)
    weights = torch.cat([signed[None], signed[orders]])
    energies = -((weights @ gaps) * weights).sum(-1)
    return float((energies >= energies[0] - 1e-12).double().mean())


@dataclass(frozen=True)
class Overlap:
    """Acceptance with one draft model.
    shift: the distance by which the draft model's hills are moved. kept: the share of drafts kept. integral: of min(p,
    q). error: one standard error of ``kept``. tried: the number of points drawn from p per replaced draft."""

    shift: float
    kept: float
    integral: float
    error: float
    tried: float


@dataclass(frozen=True)
class Figures:
    """All figures of the card.
    overlaps: one per shift of the draft model. tests: name of a sample -> p-value of a two-sample test against the
    target's sample. walk: the number of points in a walk, and the number of target passes that wrote it."""

    overlaps: list[Overlap]
    tests: dict[str, float]
    walk: tuple[int, int]

    def to_dict(self) -> dict:
        return asdict(self)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def judged(count: int, seed: int, shift: float = 0.0, replaced: Replace = from_residual) -> Judged:
    """The outcome for ``count`` points that the shifted draft model drafts and the target judges."""
    draft, generator = DRAFT.shifted(torch.tensor([shift, 0.0])), seeded(seed)
    return judge(TARGET, draft, draft.draw(count, generator), generator, replaced)


def measured_overlap(shift: float, drafts: int = DRAFTS) -> Overlap:
    verdict = judged(drafts, 11, shift)
    kept = float(verdict.kept.double().mean())
    refused = int((~verdict.kept).sum())
    return Overlap(
        shift,
        kept,
        overlap(TARGET, DRAFT.shifted(torch.tensor([shift, 0.0]))),
        (kept * (1 - kept) / drafts) ** 0.5,
        verdict.tried / refused if refused else 0.0,
    )


def walks(count: int, seed: int, replaced: Replace | None) -> Tensor:
    """The second and third point of each of ``count`` walks, [count, 4]. replaced: how rejected drafts are replaced.
    With None, nothing is drafted, and all points are drawn from p."""
    generator, target, draft = seeded(seed), Walk(TARGET), Walk(DRAFT)
    rows = []
    for _ in range(count):
        if replaced is None:
            points = [torch.zeros(2, dtype=torch.float64)]
            while len(points) < 4:
                points.append(target.after(points[-1]).draw(1, generator)[0])
            points = torch.stack(points[1:])
        else:
            points, _ = write(target, draft, 3, 2, generator, replaced)
        rows.append(points[1:].flatten())
    return torch.stack(rows)


def evidence(points: Tensor) -> Tensor:
    """The statistic log p / q at each point, [N, 2] -> [N, 1]. It suffices to distinguish p from any law that is built
    from p and q only."""
    return (TARGET.density(points) / DRAFT.density(points)).log()[:, None]


def tests(points: int = TESTED, walked: int = WALKS) -> dict[str, float]:
    """The p-value of each sample in a test against new points of the target. A small value is evidence that the sample
    does not follow the target's law."""
    truth = evidence(TARGET.draw(points, seeded(2)))
    biased = judged(points, 3, replaced=from_target)
    return {
        "written speculatively": p_value(evidence(judged(points, 3).points), truth),
        "the draft alone": p_value(evidence(DRAFT.draw(points, seeded(4))), truth),
        "refused drafts replaced from p": p_value(evidence(biased.points), truth),
        "walks written speculatively": p_value(
            walks(walked, 5, from_residual), walks(walked, 6, None)
        ),
    }


def measured(quick: bool = False) -> Figures:
    """All figures. quick: use fewer points."""
    shifts = SHIFTS[::3] if quick else SHIFTS
    length = LENGTH // 4 if quick else LENGTH
    _, passes = write(Walk(TARGET), Walk(DRAFT), length, AHEAD, seeded(7))
    overlaps = [measured_overlap(shift, DRAFTS // 4 if quick else DRAFTS) for shift in shifts]
    return Figures(
        overlaps,
        tests(TESTED // 2 if quick else TESTED, WALKS // 2 if quick else WALKS),
        (length, passes),
    )


def exhibits(figures: Figures) -> list[Exhibit]:
    """The exhibits of the method's card."""
    return [_clouds(), _curve(figures), _table(figures)]


def _clouds() -> Clouds:
    verdict = judged(SHOWN, 3)
    rounded = lambda points: [[round(float(x), 2), round(float(y), 2)] for x, y in points]
    kept, new = verdict.points[verdict.kept], verdict.points[~verdict.kept]
    note = "Kept drafts lie where both are dense; the recovered points fill in what the draft leaves out."
    panels = [
        Panel("p, the target", [Cloud("target", rounded(TARGET.draw(SHOWN, seeded(2))))]),
        Panel(
            "q, the draft",
            [
                Cloud("accepted", rounded(verdict.drafts[verdict.kept])),
                Cloud("rejected", rounded(verdict.drafts[~verdict.kept])),
            ],
        ),
        Panel("Written", [Cloud("accepted", rounded(kept)), Cloud("recovered", rounded(new))]),
    ]
    return Clouds("Target, draft, and what is written", panels, note=note)


def _curve(figures: Figures) -> Curve:
    rows = figures.overlaps
    return Curve(
        "Kept drafts against the overlap of p and q",
        [row.shift for row in rows],
        [
            Series("kept, measured", [row.kept for row in rows]),
            Series("integral of min(p, q)", [row.integral for row in rows]),
        ],
        x_label="shift of the draft",
        y_label="share",
        note="The share that is kept is the integral of min(p, q), as for tokens it is the sum.",
    )


def _table(figures: Figures) -> Table:
    length, passes = figures.walk
    rows = [[name, round(value, 3)] for name, value in figures.tests.items()]
    note = (
        f"Two-sample tests by energy distance; under one law a value below 0.01 has a chance of 1 %. A walk of {length} "
        f"points took {passes} passes of the target."
    )
    return Table("Does it come from p?", ["Compared with the target", "p-value"], rows, note=note)
