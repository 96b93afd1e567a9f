"""`python -m engine bench --suite continuous`: acceptance on densities. It needs no model."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.bench.command import check_writable
from engine.continuous.continuous_figures import Figures, measured
from engine.parts.loading import ModelPaths
from engine.trace import write_lines


def continuous(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: fewer points."""
    if out is not None:
        check_writable(Path(out))
    found = measured(quick)
    print(told(found))
    if out is not None:
        write_lines(out, [json.dumps(found.to_dict(), indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)


def told(found: Figures) -> str:
    """The figures as text."""
    lines = ["Drafts kept against the overlap integral, by the shift of the draft:"]
    lines.append(
        f"{'shift':>7}  {'kept':>7}  {'± error':>8}  {'integral':>8}  {'tried a refusal':>15}"
    )
    for row in found.overlaps:
        lines.append(
            f"{row.shift:>7.1f}  {row.kept:>7.3f}  {row.error:>8.3f}  {row.integral:>8.3f}  {row.tried:>15.2f}"
        )
    lines.append("Two-sample tests against the target (energy distance, permutations):")
    lines += [f"  {name:<34} p = {value:.3f}" for name, value in found.tests.items()]
    length, passes = found.walk
    lines.append(
        f"A walk of {length} points: {passes} passes of the target, {length / passes:.2f} points a pass."
    )
    return "\n".join(lines)
