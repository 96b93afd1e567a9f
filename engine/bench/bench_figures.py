"""Computes figures from results: medians, ratios and geometric means. This module runs no models."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from engine.bench.contestants import plain
from engine.bench.suite import Result, by_contestant, sums
from engine.core.step import STAGES


@dataclass(frozen=True)
class Row:
    """The figures of one contestant on one workload.

    tokens_per_second: the median over prompts of the median over rounds. mean_accepted: tokens per target call. calls:
    target calls, summed over the prompts of one round. to_plain: the speed divided by that of plain decoding in the
    compared library (the contestant of group ``plain``). to_none: the speed divided by that of plain decoding in this
    engine.
    """

    contestant: str
    group: str
    workload: str
    tokens_per_second: float
    mean_accepted: float
    calls: int
    to_plain: float | None = None
    to_none: float | None = None


def rows(results: Sequence[Result], groups: dict[str, str]) -> list[Row]:
    """One row per workload and contestant that took part. Workloads have the order of the results, contestants that of
    ``groups``.

    groups: the group of each contestant, by name. The ratios ``to_plain`` and ``to_none`` are None if the contestant to
    which the speed is compared did not take part.
    """
    peer = next((name for name, group in groups.items() if group == "plain"), None)
    table = []
    for workload in dict.fromkeys(result.prompt.workload for result in results):
        texts = [result for result in results if result.prompt.workload == workload]
        names = [name for name in groups if any(r.contestant == name for r in texts)]
        speeds = {name: _speed([r for r in texts if r.contestant == name]) for name in names}
        for name in names:
            first = [r.writing for r in texts if r.contestant == name and r.round == 0]
            calls = sum(writing.calls for writing in first)
            tokens = sum(len(writing.tokens) for writing in first)
            ratios = (_ratio(speeds[name], speeds.get(base)) for base in (peer, plain().key))
            table.append(
                Row(name, groups[name], workload, speeds[name], tokens / calls, calls, *ratios)
            )
    return table


def profiles(results: Sequence[Result]) -> list[dict]:
    """The mean times of each contestant's steps, in milliseconds, for contestants that report the times of their
    stages.

    These times show which stage limits a contestant's speed. prefill: time per prompt. stages: time per step, by stage.
    rest: time per step outside all stages. steps: number of steps.
    """
    table = []
    for name, count in sums(
        [result for result in results if result.writing.stages], by_contestant
    ).items():
        steps, spent = count["calls"], {stage: count[stage] for stage in STAGES}
        rest = 1000 * count["seconds"] - sum(spent.values()) - count["prefill"]
        stages = {stage: spent / steps for stage, spent in spent.items()}
        about = {"prefill": count["prefill"] / count["texts"], "stages": stages}
        table.append({"contestant": name, "steps": steps, **about, "rest": rest / steps})
    return table


def _speed(results: Iterable[Result]) -> float:
    by_prompt: dict[str, list[float]] = {}
    for result in results:
        speed = len(result.writing.tokens) / result.writing.seconds
        by_prompt.setdefault(result.prompt.name, []).append(speed)
    return median(median(speeds) for speeds in by_prompt.values())


def _ratio(value: float, base: float | None) -> float | None:
    return None if base is None else value / base


def geometric_mean(values: Iterable[float]) -> float:
    values = list(values)
    return math.exp(sum(math.log(value) for value in values) / len(values))


def best_of(table: Sequence[Row], members: Iterable[str]) -> dict[str, Row]:
    """The fastest row among these contestants, by workload. members: names of contestants."""
    members = set(members)
    best: dict[str, Row] = {}
    for row in table:
        if row.contestant in members:
            ahead = best.get(row.workload)
            if ahead is None or row.tokens_per_second > ahead.tokens_per_second:
                best[row.workload] = row
    return best
