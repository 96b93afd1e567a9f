"""`python -m engine bench --suite parallelbench`: list operations, and where drafting all places at once fails.

After Kang et al., "ParallelBench: Understanding the Trade-offs of Parallel Decoding in Diffusion LLMs" (2025):
operations on short lists are easy, but in some of them, shuffling above all, each token depends on which others were
chosen. For each task the suite measures the dependence in the target's own distribution (``engine.bench.dependence``),
and the accepted length of every diffusion drafter and of a draft model that reads its own tokens. Counts, not times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM

from engine.bench.command import check_writable
from engine.bench.counting import Point, able, count, write_figure
from engine.bench.dependence import dependence
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.parts.loading import ModelPaths, Models, load_models

AGAINST = "chain"
OPTIONS = {"length": 7, "shortest": 7, "block": 7, "stop_below": 0.0}
"""All blocks and drafts have one length."""
TOKENS, PLACES, TEXTS = 24, 7, 24
SAMPLINGS = {"greedy": Sampling(), "drawn": Sampling(1.0)}


@dataclass(frozen=True)
class Row:
    """One drafter on one task. accepted: drafted tokens kept per step. correlation, entropy: the task's, in nats per
    place."""

    task: str
    correlation: float
    entropy: float
    drafter: str
    sampling: str
    accepted: float


def keys() -> tuple[str, ...]:
    """Every diffusion drafter, and one that reads its own tokens."""
    found = [
        key
        for key, cls in drafters().items()
        if cls.family == "diffusion" and cls.loop == "speculative"
    ]
    return (AGAINST, *found)


def task_of(prompt: str) -> str:
    """The operation that a prompt asks for: its first word."""
    return prompt.split(":")[0].split()[0].lower()


def parallelbench(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: one prompt of each task, else four."""
    tasks: dict[str, list[str]] = {}
    for card in workloads["operations"]:
        tasks.setdefault(task_of(card["prompt"]), []).append(card["prompt"])
    most = 1 if quick else 4
    run_parallelbench(paths, {task: some[:most] for task, some in tasks.items()}, keys(), out)


def run_parallelbench(
    paths: ModelPaths, tasks: Mapping[str, Sequence[str]], asked: Sequence[str], out: str | None
) -> list[Row]:
    """Count, print tables, and write rows and figures where ``out`` says. tasks: prompts by task. asked: drafters."""
    if out is not None:
        check_writable(Path(out))
    transformers.utils.logging.disable_progress_bar()
    found, needs = able(asked, paths)
    models = load_models(paths, needs, "float32", "cpu")
    module = AutoModelForCausalLM.from_pretrained(paths.target, dtype=torch.float32).eval()
    rows: list[Row] = []
    for task, prompts in tasks.items():
        read = [models.target.tokenizer(text)["input_ids"] for text in prompts]
        rows += of_task(models, module, task, read, found)
    rows.sort(key=lambda row: row.correlation)
    print("\n\n".join(table(rows, name) for name in SAMPLINGS))
    if out is not None:
        write_figure(out, [asdict(row) for row in rows], [figure(rows, name) for name in SAMPLINGS])
    return rows


def of_task(
    models: Models, module, task: str, prompts: Sequence[Sequence[int]], found: Sequence[str]
) -> list[Row]:
    ends = frozenset(models.target.end_tokens)
    told = [dependence(module, prompt, PLACES, TEXTS, 0, ends) for prompt in prompts]
    correlation = sum(one.correlation for one in told) / len(told)
    entropy = sum(one.entropy for one in told) / len(told)
    return [
        Row(
            task,
            correlation,
            entropy,
            key,
            name,
            count(models, key, prompts, TOKENS, sampling, OPTIONS).accepted_per_step,
        )
        for name, sampling in SAMPLINGS.items()
        for key in found
    ]


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation: -1 where one falls as the other rises. None where there is nothing to rank."""

    def ranks(values: Sequence[float]) -> torch.Tensor:
        given = torch.tensor(values, dtype=torch.float64)
        below = (given[:, None] > given).sum(1) + 0.5 * ((given[:, None] == given).sum(1) - 1)
        return below - below.mean()

    one, other = ranks(x), ranks(y)
    spread = float(one.norm() * other.norm())
    return float(one @ other) / spread if spread else None


def figure(rows: Sequence[Row], sampling: str) -> dict:
    """One series per drafter, one point per task."""
    points = [
        Point(row.drafter, row.task, row.correlation, row.accepted)
        for row in rows
        if row.sampling == sampling
    ]
    return {
        "title": f"Accepted length against dependence, {sampling} texts",
        "x": "conditional total correlation, nats a place",
        "y": "accepted tokens a step",
        "points": [asdict(point) for point in points],
    }


def table(rows: Sequence[Row], sampling: str) -> str:
    """Tasks from the least dependence to the most, one column per drafter; the last line says how accepted length
    varies with dependence (Spearman's rank correlation)."""
    some = [row for row in rows if row.sampling == sampling]
    names = list(dict.fromkeys(row.drafter for row in some))
    tasks = {row.task: row for row in some}
    accepted = {(row.task, row.drafter): row.accepted for row in some}
    heads = " ".join(f"{name:>9}" for name in names)
    lines = [f"{sampling} texts: accepted drafted tokens a step"]
    lines += [f"{'task':10} {'depend.':>8} {'entropy':>8} {heads}"]
    for task, row in tasks.items():
        cells = " ".join(f"{accepted[task, name]:9.2f}" for name in names)
        lines.append(f"{task:10} {row.correlation:8.3f} {row.entropy:8.3f} {cells}")
    depend = [row.correlation for row in tasks.values()]
    told = [rank_correlation(depend, [accepted[task, name] for task in tasks]) for name in names]
    cells = " ".join(f"{'–' if one is None else f'{one:.2f}':>9}" for one in told)
    lines.append(f"{'rank correlation':27} {cells}")
    return "\n".join(lines)
