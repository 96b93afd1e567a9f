"""Where a step's time goes, drafter by drafter: this shows what limits a figure that falls short of
its aim."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.bench.rounds import Result
from engine.core.step import STAGES


@dataclass(frozen=True)
class Profile:
    """Means over everything a contestant wrote, in milliseconds.

    prefill: per prompt. stages: per step, by name. rest: per step, the time outside all stages.
    """

    contestant: str
    steps: int
    prefill: float
    stages: dict[str, float]
    rest: float


def profiles(results: Sequence[Result]) -> list[Profile]:
    """One profile for each contestant that reports the times of its stages, in the order of the
    results."""
    names = dict.fromkeys(result.contestant for result in results if result.writing.stages)
    return [_profile(name, [r for r in results if r.contestant == name]) for name in names]


def _profile(name: str, results: Sequence[Result]) -> Profile:
    writings = [result.writing for result in results]
    steps = sum(writing.calls for writing in writings)
    total = 1000 * sum(writing.seconds for writing in writings)

    def spent(stage: str) -> float:
        return sum(writing.stages[stage] for writing in writings)

    seen = sum(spent(stage) for stage in ("prefill", *STAGES))
    return Profile(
        contestant=name,
        steps=steps,
        prefill=spent("prefill") / len(writings),
        stages={stage: spent(stage) / steps for stage in STAGES},
        rest=(total - seen) / steps,
    )
