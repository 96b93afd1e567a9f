"""The tables, as text and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict

from engine.bench.agreement import Difference
from engine.bench.bench_figures import Row, geometric_mean
from engine.bench.goals import Goal
from engine.bench.profile import Profile
from engine.core.step import STAGES


def text(
    table: Sequence[Row],
    aims: Sequence[Goal],
    different: Sequence[Difference],
    costs: dict[int, float],
    spent: Sequence[Profile],
    compared: int,
) -> str:
    """Everything that was measured, for a terminal of 80 columns."""
    parts = [_workload(table, name) for name in dict.fromkeys(row.workload for row in table)]
    parts += [_means(table), _spent(spent), _costs(costs)]
    parts += [_agreement(different, compared), goal_lines(aims)]
    return "\n\n".join(parts)


def _workload(table: Sequence[Row], workload: str) -> str:
    head = f"{workload:24} {'tokens/s':>9} {'/plain':>7} {'/none':>7} {'accepted':>9} {'calls':>6}"
    lines = [head, "-" * len(head)]
    for row in table:
        if row.workload == workload:
            lines.append(
                f"{row.contestant:24} {row.tokens_per_second:9.1f} {_times(row.to_plain)} "
                f"{_times(row.to_none)} {row.mean_accepted:9.2f} {row.calls:6d}"
            )
    return "\n".join(lines)


def _times(ratio: float | None) -> str:
    return f"{'-':>7}" if ratio is None else f"{ratio:7.2f}"


def _means(table: Sequence[Row]) -> str:
    head = f"{'geometric means':24} {'tokens/s':>9} {'/plain':>7} {'/none':>7}"
    lines = [head, "-" * len(head)]
    for name in dict.fromkeys(row.contestant for row in table):
        own = [row for row in table if row.contestant == name]
        speed = geometric_mean(row.tokens_per_second for row in own)
        ratios = [_times(_mean_or_none(own, field)) for field in ("to_plain", "to_none")]
        lines.append(f"{name:24} {speed:9.1f} {' '.join(ratios)}")
    return "\n".join(lines)


def _mean_or_none(rows: Sequence[Row], field: str) -> float | None:
    values = [getattr(row, field) for row in rows]
    return None if None in values else geometric_mean(values)


def _spent(spent: Sequence[Profile]) -> str:
    columns = " ".join(f"{name:>7}" for name in (*STAGES, "rest", "prefill"))
    head = f"{'ms of a step':24} {'all':>7} {columns}"
    lines = [head, "-" * len(head)]
    for each in spent:
        parts = [*each.stages.values(), each.rest]
        shown = " ".join(f"{ms:7.2f}" for ms in (sum(parts), *parts, each.prefill))
        lines.append(f"{each.contestant:24} {shown}")
    return "\n".join(lines)


def _costs(costs: dict[int, float]) -> str:
    pairs = ", ".join(f"{nodes} nodes {ms:.2f} ms" for nodes, ms in costs.items())
    return f"one pass of the target over root and nodes: {pairs}"


def _agreement(different: Sequence[Difference], compared: int) -> str:
    real = [d for d in different if not d.numerics]
    near = len(different) - len(real)
    equal = f"outputs: {compared - len(different)} of {compared} equal"
    lines = [f"{equal}, {near} differ at a near tie, {len(real)} differ otherwise"]
    lines += [
        f"  {d.contestant} on {d.prompt}: token {d.position}, margin {d.margin:.2g}"
        for d in different
    ]
    return "\n".join(lines)


def goal_lines(aims: Sequence[Goal]) -> str:
    head = f"{'what it must show':44} {'at least':>9} {'aim':>6} {'here':>7}"
    lines = [head, "-" * len(head)]
    for goal in aims:
        least = f"{'<=' if goal.at_most else '>='} {goal.least:g}"
        here = "-" if goal.value is None else f"{goal.value:.2f}"
        verdict = {None: "", True: "met", False: "NOT met"}[goal.met]
        lines.append(f"{goal.what:44} {least:>9} {goal.aim:6g} {here:>7} {verdict}".rstrip())
    return "\n".join(lines)


def as_json(
    table: Sequence[Row],
    aims: Sequence[Goal],
    different: Sequence[Difference],
    costs: dict[int, float],
    spent: Sequence[Profile],
    setting: dict,
) -> dict:
    """The tables as data. setting: what was run, and on which machine."""
    return {
        "kind": "bench",
        "schema": 1,
        "setting": setting,
        "rows": [asdict(row) for row in table],
        "verify_milliseconds": {str(nodes): ms for nodes, ms in costs.items()},
        "profiles": [asdict(each) for each in spent],
        "differences": [asdict(d) | {"numerics": d.numerics} for d in different],
        "goals": [asdict(goal) | {"met": goal.met} for goal in aims],
    }
