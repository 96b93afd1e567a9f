"""`python -m engine bench`: load, race, compare, report."""

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import transformers

from engine.bench.agreement import differences
from engine.bench.bench_figures import rows
from engine.bench.contestants import Contestant, Ours, our_contestants
from engine.bench.goals import goals
from engine.bench.peers import SCHEDULES, peer_contestants
from engine.bench.profile import profiles
from engine.bench.report import as_json, text
from engine.bench.round_progress import Progress
from engine.bench.rounds import Prompt, race
from engine.bench.verify_cost import verify_costs
from engine.errors import UserError
from engine.methods import drafters
from engine.parts.loading import ModelPaths, Models, load_models
from engine.trace import write_lines


@dataclass(frozen=True)
class Plan:
    """How much is measured. prompts: per workload. tokens: written after each prompt. schedules:
    those of assisted generation besides its default."""

    prompts: int
    rounds: int
    tokens: int
    schedules: tuple[tuple[str, int], ...]


FULL = Plan(prompts=6, rounds=3, tokens=128, schedules=tuple(SCHEDULES))
QUICK = Plan(prompts=2, rounds=2, tokens=48, schedules=(("constant", 3), ("heuristic", 5)))


def peers(paths: ModelPaths, prompts: dict[str, list[dict]], quick: bool, out: str | None) -> None:
    """The suite of that name."""
    bench(paths, prompts, QUICK if quick else FULL, out)


def bench(paths: ModelPaths, prompts: dict[str, list[dict]], plan: Plan, out: str | None) -> None:
    """Run the plan, print the tables, and write JSON where ``out`` says.

    prompts: {"id", "prompt"} by workload; each workload gives ``plan.prompts`` of them, spread
    evenly.
    """
    if out is not None:
        check_writable(Path(out))
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    models = load_models(paths, needed(paths), "float32", "cpu")
    others = peer_contestants(paths, list(plan.schedules))
    ours = our_contestants(models)
    contestants: list[Contestant] = [*others, *ours]
    chosen = choose(models, prompts, plan)
    progress = Progress(len(contestants) * len(chosen) * plan.rounds)
    try:
        results = race(contestants, chosen, plan.rounds, plan.tokens, progress.tick)
    finally:
        progress.close()
    table = rows(results, {each.name: each.group for each in contestants})
    costs = verify_costs(models.target)
    aims = goals(table, costs[8] / costs[0])
    different = differences(results, others[0].name, others[0].logits)
    spent = profiles(results)
    print(text(table, aims, different, costs, spent, compared=len(contestants) * len(chosen)))
    if out is not None:
        data = as_json(table, aims, different, costs, spent, setting(models, plan, ours))
        write_lines(out, [json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)


def needed(paths: ModelPaths) -> dict[str, str]:
    """Role -> kind of all parts that exist and that some drafter uses."""
    needs = {role: kind for cls in drafters().values() for role, kind in cls.needs.items()}
    return {role: kind for role, kind in needs.items() if role in paths.parts}


def check_writable(path: Path) -> None:
    """Raises UserError if ``path`` cannot be written, before minutes of measuring rather than
    after."""
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.name} cannot be written there.")


def choose(models: Models, prompts: dict[str, list[dict]], plan: Plan) -> list[Prompt]:
    """Prompts that leave room for the tokens to be written, evenly spread over each workload."""
    room = models.target.max_context - plan.tokens
    chosen = []
    for workload, entries in prompts.items():
        fitting = []
        for entry in entries:
            tokens = models.target.tokenizer(entry["prompt"])["input_ids"]
            if 0 < len(tokens) <= room:
                fitting.append(Prompt(workload, entry["id"], tokens))
        step = max(1, len(fitting) // plan.prompts)
        chosen += fitting[::step][: plan.prompts]
    return chosen


def setting(models: Models, plan: Plan, ours: list[Ours]) -> dict:
    return {
        "target": models.target.name,
        "parameters": models.target.parameters,
        "dtype": "float32",
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "processor": processor(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "plan": asdict(plan),
        "options": {contestant.name: contestant.options for contestant in ours},
    }


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
