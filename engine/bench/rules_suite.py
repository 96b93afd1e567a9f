"""`python -m engine bench --suite rules`: how much of the same kind of draft each rule keeps, at temperature 1.

Texts are drawn after prompts of every workload, with many seeds and each rule in turn. Tokens a step are a mean over texts;
so is what a rule gains over the first one of its group, text by text. Both have a standard error. Counts, not times.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.bench.contestants import Ours, able
from engine.bench.report import Report, table
from engine.bench.suite import Cards, Plan, Suite, choose
from engine.core.options import Value
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier, verifiers

FULL, QUICK = Plan(prompts=2, rounds=32, tokens=64), Plan(prompts=1, rounds=3, tokens=32)
"""rounds: seeds."""


class Entry(NamedTuple):
    drafter: str
    options: Mapping[str, Value]
    rule: str

    @property
    def name(self) -> str:
        return f"{self.drafter}, {self.rule}"

    def contestant(self, models: Models, seed: int) -> Ours:
        sampling, rule = Sampling(1.0, seed=seed), verifier(self.rule)
        return Ours(drafters()[self.drafter], models, self.name, self.options, sampling, rule)


GROUPS = tuple(
    tuple(Entry(key, options, rule) for key, options, rules in group for rule in rules)
    for group in (
        [("chain", {"length": 4}, ("rejection", "block"))],
        [("multi_chain", {"chains": 2, "length": 4}, ("rejection", "spectr", "greedy_multipath"))],
        [("rsd_c", {"branching": "2-2-1"}, ("rejection", "traversal"))],
        [("omnidraft", {"milliseconds": 0.0}, ("rejection",)), ("bytewise", {}, ("rejection", "bytewise"))],
    )
)  # fmt: skip
"""The last group drafts in another vocabulary. A token of ``bytewise`` has no law of its own, so rejection sampling judges it as a
fixed guess."""


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """In a row: rate: tokens a step. error: of the rate. gain: over the first of the group, as a share of its rate, and
    gain_error; None for the first."""
    plan, named = QUICK if quick else FULL, {entry.drafter for group in GROUPS for entry in group}
    classes, needs = able([cls for key, cls in drafters().items() if key in named], paths)
    usable = {cls.key for cls in classes}
    groups = [
        [one for one in group if one.drafter in usable and one.rule in verifiers()]
        for group in GROUPS
    ]
    models = load_models(paths, needs, "float32", "cpu")
    prompts, rates = choose(models, workloads, plan), defaultdict(list)
    for seed in range(plan.rounds):
        contestants = [entry.contestant(models, seed) for group in groups for entry in group]
        for result in Suite(contestants, prompts, replace(plan, rounds=1)).run():
            writing = result.writing
            rates[result.contestant].append(len(writing.tokens) / writing.counts["steps"])
    rows = [row for group in groups for row in _rows(group, rates)]
    columns = (
        "drafter", "rule", "tokens a step=rate:.3f", "±=error:.3f", "gain=gain:+.1%", "±=gain_error:.1%",
    )  # fmt: skip
    told = (
        f"{len(prompts) * plan.rounds} texts of {plan.tokens} tokens by each; ±: a standard error."
    )
    return Report(f"{table(rows, columns)}\n{told}", rows)


def _rows(group: Sequence[Entry], rates: Mapping[str, Sequence[float]]) -> Iterator[dict]:
    for entry in group:
        own, first = rates[entry.name], rates[group[0].name]
        more = [one - other for one, other in zip(own, first, strict=True)]
        row = {"drafter": entry.drafter, "rule": entry.rule, "gain": None, "gain_error": None}
        row |= {"rate": statistics.mean(own), "error": _error(own)}
        if entry is not group[0]:
            base = statistics.mean(first)
            row |= {"gain": statistics.mean(more) / base, "gain_error": _error(more) / base}
        yield row


def _error(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    return statistics.stdev(values) / math.sqrt(len(values))
