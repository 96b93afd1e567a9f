"""`python -m engine bench --suite parallelbench`: operations on lists, some of which defeat drafting all positions at
once.

After Kang et al., "ParallelBench: Understanding the Trade-offs of Parallel Decoding in Diffusion LLMs" (2025):
operations on short lists are easy, but in some of them, above all in shuffling, each token depends on the choice of the
other tokens. For each task the suite measures the dependence in the target's own distribution
(``engine.bench.dependence``), and the accepted length of an autoregressive draft model and of every diffusion drafter.
It measures counts, not times.
"""

from collections.abc import Mapping, Sequence
from statistics import mean

import torch
from transformers import AutoModelForCausalLM

from engine.bench.contestants import Ours, able, chain, own_options
from engine.bench.dependence import dependence
from engine.bench.report import Report, drawing, table
from engine.bench.suite import Cards, Plan, Suite, choose, sums
from engine.core.drafter import Drafter
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.parts.loading import ModelPaths, load_models

FULL, QUICK = Plan(prompts=4, rounds=1, tokens=24), Plan(prompts=1, rounds=1, tokens=24)
OPTIONS = {"length": 7, "shortest": 7, "block": 7, "stop_below": 0.0}
"""Options with which all blocks and drafts have the same length."""
PLACES, TEXTS = 7, 24
SAMPLINGS = {"greedy": Sampling(), "drawn": Sampling(1.0)}


def candidates() -> list[type[Drafter]]:
    """The chain drafter, whose draft model is autoregressive, and then every diffusion drafter."""
    blocks = [
        cls
        for cls in drafters().values()
        if cls.family == "diffusion" and cls.loop == "speculative"
    ]
    return [chain(), *blocks]


def task_of(prompt: str) -> str:
    """The operation that a prompt requests: its first word, in lower case."""
    return prompt.split(":")[0].split()[0].lower()


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report, with a row for each task, drafter and sampling.

    accepted: accepted drafted tokens per step. correlation, entropy: the dependence of the tokens of the task's
    answers, in nats per token (``Dependence``).
    """
    tasks: dict[str, list] = {}
    for card in workloads["operations"]:
        tasks.setdefault(task_of(card["prompt"]), []).append(card)
    classes, needs = able(candidates(), paths)
    models, plan = load_models(paths, needs, "float32", "cpu"), QUICK if quick else FULL
    module = AutoModelForCausalLM.from_pretrained(paths.target, dtype=torch.float32).eval()
    prompts, ends = choose(models, tasks, plan), frozenset(models.target.end_tokens)
    depend: dict[str, list] = {}
    for prompt in prompts:
        estimate = dependence(module, prompt.tokens, PLACES, TEXTS, 0, ends)
        depend.setdefault(prompt.workload, []).append(estimate)
    rows = []
    for sampling, how in SAMPLINGS.items():
        ours = [
            Ours(cls, models, "", own_options(cls, OPTIONS), how, recorded=True) for cls in classes
        ]
        rows += [
            {
                "task": task,
                "correlation": mean(prompt.correlation for prompt in depend[task]),
                "entropy": mean(prompt.entropy for prompt in depend[task]),
                "drafter": drafter,
                "sampling": sampling,
                "accepted": count["accepted"] / count["steps"],
            }
            for (task, drafter), count in sums(Suite(ours, prompts, plan).run()).items()
        ]
    rows.sort(key=lambda row: row["correlation"])
    text = "\n\n".join(by_task(rows, sampling) for sampling in SAMPLINGS)
    data = {"rows": rows, "figures": [_drawing(rows, sampling) for sampling in SAMPLINGS]}
    return Report(text, data, "python -m viz.suite draws it")


def _drawing(rows: Sequence[Mapping], sampling: str) -> dict:
    points = [row for row in rows if row["sampling"] == sampling]
    return drawing(
        f"Accepted length against dependence, {sampling} texts",
        "conditional total correlation, nats a place",
        "accepted tokens a step",
        [(row["drafter"], row["task"], row["correlation"], row["accepted"]) for row in points],
    )


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation of two sequences: -1 if one falls as the other rises. None if all numbers in one
    sequence are equal."""

    def ranks(values: Sequence[float]) -> torch.Tensor:
        numbers = torch.tensor(values, dtype=torch.float64)
        below = (numbers[:, None] > numbers).sum(1) + 0.5 * (
            (numbers[:, None] == numbers).sum(1) - 1
        )
        return below - below.mean()

    first, second = ranks(x), ranks(y)
    spread = float(first.norm() * second.norm())
    return float(first @ second) / spread if spread else None


def by_task(rows: Sequence[Mapping], sampling: str) -> str:
    """A table of the tasks in the order of ``rows``, with the accepted length of each drafter in a column. The last
    line is Spearman's rank correlation between accepted length and dependence."""
    tasks: dict[str, dict] = {}
    for row in (row for row in rows if row["sampling"] == sampling):
        tasks.setdefault(row["task"], dict(row))[row["drafter"]] = row["accepted"]
    names = list(dict.fromkeys(row["drafter"] for row in rows))
    depend = [row["correlation"] for row in tasks.values()]
    last = {"task": "rank correlation", "correlation": None, "entropy": None}
    for name in names:
        last[name] = rank_correlation(depend, [row[name] for row in tasks.values()])
    columns = ["task", "correlation:.3f", "entropy:.3f", *(f"{name}:.2f" for name in names)]
    text = table([*tasks.values(), last], columns)
    return f"{sampling} texts: accepted drafted tokens a step\n{text}"
