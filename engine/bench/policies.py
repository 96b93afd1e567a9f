"""`python -m engine bench --suite policies`: denoising passes against accepted length, for every unmasking policy.

One denoiser, blocks of one length and greedy texts: all policies write the same texts and differ only in passes and
steps. Counts, not times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.bench.command import check_writable
from engine.bench.counting import Point, able, count, write_figure
from engine.core.sampling import Sampling
from engine.parts.loading import ModelPaths, load_models

KEYS = ("dflash", "diffuspec", "dimple", "localleap", "ccd", "learn2pd", "adablock")
"""The first two make one pass; the others are policies."""
OPTIONS = {"length": 7, "shortest": 7, "block": 7, "passes": 7}
"""No policy is cut short: seven passes fill seven places one by one."""
TOKENS = 64


@dataclass(frozen=True)
class Row:
    """One policy on one workload, a mean over the steps of all prompts."""

    workload: str
    policy: str
    passes: float
    accepted: float

    @property
    def accepted_per_pass(self) -> float:
        return self.accepted / self.passes


def policies(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: one prompt of each workload, else every fourth."""
    chosen = {
        name: [card["prompt"] for card in (cards[:1] if quick else cards[::4])]
        for name, cards in workloads.items()
    }
    run_policies(paths, chosen, out)


def run_policies(
    paths: ModelPaths, prompts: Mapping[str, Sequence[str]], out: str | None
) -> list[Row]:
    """Count, print a table, and write rows and figure where ``out`` says. prompts: by workload."""
    if out is not None:
        check_writable(Path(out))
    keys, needs = able(KEYS, paths)
    models = load_models(paths, needs, "float32", "cpu")
    rows = []
    for workload, texts in prompts.items():
        read = [models.target.tokenizer(text)["input_ids"] for text in texts]
        for key in keys:
            found = count(models, key, read, TOKENS, Sampling(), OPTIONS)
            rows.append(Row(workload, key, found.passes_per_step, found.accepted_per_step))
    print(table(rows))
    if out is not None:
        write_figure(out, [asdict(row) for row in rows], [figure(rows)])
    return rows


def figure(rows: Sequence[Row]) -> dict:
    """One series per policy, one point per workload."""
    points = [Point(row.policy, row.workload, row.passes, row.accepted) for row in rows]
    return {
        "title": "Passes against accepted length",
        "x": "denoising passes a step",
        "y": "accepted tokens a step",
        "points": [asdict(point) for point in points],
    }


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'workload':12} {'policy':10} {'passes':>7} {'accepted':>9} {'a pass':>7}"]
    for row in rows:
        lines.append(
            f"{row.workload:12} {row.policy:10} {row.passes:7.2f} {row.accepted:9.2f} "
            f"{row.accepted_per_pass:7.2f}"
        )
    return "\n".join(lines)
