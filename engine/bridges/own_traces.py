"""Acceptance in this engine's own traces: counts of runs with the same drafter, rule and options are added."""

from __future__ import annotations

import json
from collections.abc import Iterable

from engine.bridges.imported_line import imported_line
from engine.trace import Trace

STAGES = ("draft", "verify", "judge", "commit", "total")


def lines_of_traces(traces: Iterable[tuple[str, Trace]]) -> list[dict]:
    """One ``acceptance`` line for each combination of drafter, options and rule. traces: pairs of a file name and a
    trace."""
    groups: dict[str, dict] = {}
    for name, trace in traces:
        run, summary = trace.run, trace.summary
        about = [run["drafter"]["key"], run["drafter"]["options"], run["verifier"]["key"]]
        group = groups.setdefault(json.dumps(about, sort_keys=True), {"about": about, "runs": []})
        group["runs"].append((name, summary, [len(step["nodes"]["token"]) for step in trace.steps]))
    return [_line(*group["about"], group["runs"]) for group in groups.values()]


def _line(drafter: str, options: dict, rule: str, runs: list[tuple[str, dict, list[int]]]) -> dict:
    depths: dict[int, list[int]] = {}
    for _, summary, _ in runs:
        for row in summary["acceptance_by_depth"]:
            counts = depths.setdefault(row["depth"], [0, 0])
            counts[0] += row["reached"]
            counts[1] += row["accepted"]
    positions = [
        {"position": depth, "reached": reached, "accepted": accepted}
        for depth, (reached, accepted) in sorted(depths.items())
    ]
    names, sizes = [name for name, _, _ in runs], [size for *_, drafts in runs for size in drafts]
    return imported_line(
        "Draftscope",
        names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
        drafter=drafter,
        options=options,
        verifier=rule,
        size=max(sizes, default=0),
        positions=positions,
        steps=len(sizes),
        drafted=sum(sizes),
        accepted=sum(entry["accepted"] for entry in positions),
        new_tokens=sum(summary["new_tokens"] for _, summary, _ in runs),
        milliseconds={
            stage: round(
                sum(summary["milliseconds"].get(stage) or 0.0 for _, summary, _ in runs), 3
            )
            for stage in STAGES
        },
        requests=len(runs),
    )
