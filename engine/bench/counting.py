"""Counts over one drafter's runs, which do not depend on the machine, and points of a figure that `python -m viz.suite`
draws."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.core.options import Value, resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.parts.loading import ModelPaths, Models
from engine.rules import verifier
from engine.trace import write_lines


@dataclass
class Count:
    """Totals over all texts. accepted: drafted tokens that were kept. passes: those of the drafter's own models."""

    tokens: int = 0
    steps: int = 0
    accepted: int = 0
    passes: int = 0

    @property
    def accepted_per_step(self) -> float:
        return self.accepted / max(1, self.steps)

    @property
    def passes_per_step(self) -> float:
        return self.passes / max(1, self.steps)


def count(
    models: Models,
    key: str,
    prompts: Iterable[Sequence[int]],
    tokens: int,
    sampling: Sampling,
    options: Mapping[str, Value],
) -> Count:
    """Write ``tokens`` tokens after each prompt. options: the drafter's; options that it does not have are left out."""
    cls = drafter_class(key)
    own = {option.name for option in cls.options}
    settings = resolve(key, cls.options, {n: v for n, v in options.items() if n in own})
    rule = verifier("greedy" if sampling.greedy else cls.default_verifier)
    found = Count()
    for prompt in prompts:
        request = TextRequest(cls.build(settings, models), rule, sampling, prompt, tokens)
        for step in run_loop(models.target, request):
            found.tokens += len(step.output)
            found.steps += 1
            found.accepted += len(step.verdict.accepted)
            found.passes += sum(n for model, n in step.passes.items() if model != "target")
    return found


def able(keys: Sequence[str], paths: ModelPaths) -> tuple[list[str], dict[str, str]]:
    """Those of these drafters whose parts exist, and role -> kind of all the parts that they need."""
    classes = {key: drafter_class(key) for key in keys}
    found = [key for key, cls in classes.items() if cls.needs.keys() <= paths.parts.keys()]
    for key in keys:
        if key not in found:
            missing = ", ".join(sorted(classes[key].needs.keys() - paths.parts.keys()))
            print(f"{key} is left out: there is no part {missing}", file=sys.stderr)
    return found, {role: kind for key in found for role, kind in classes[key].needs.items()}


@dataclass(frozen=True)
class Point:
    """series: the series that the point belongs to. label: shown on hover."""

    series: str
    label: str
    x: float
    y: float


def write_figure(out: str, rows: Sequence[Mapping], figures: Sequence[Mapping]) -> None:
    """The rows of a suite and its figures, each with title, x, y (names of the axes) and points."""
    data = {"rows": list(rows), "figures": list(figures)}
    write_lines(out, [json.dumps(data, allow_nan=False, indent=1) + "\n"])
    print(f"written to {out}; python -m viz.suite draws it", file=sys.stderr)
