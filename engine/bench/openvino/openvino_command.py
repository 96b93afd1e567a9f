"""`python -m engine bench --peer openvino`: this engine beside OpenVINO GenAI, interleaved, on the same prompts."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import transformers

from engine.bench.agreement import differences
from engine.bench.bench_figures import Row, geometric_mean, rows
from engine.bench.command import Plan, check_writable, choose, needed, setting
from engine.bench.contestants import our_contestants
from engine.bench.goals import goals_beside_openvino
from engine.bench.openvino.openvino_peers import genai_contestants
from engine.bench.peers import plain_generate
from engine.bench.profile import profiles
from engine.bench.report import as_json, text
from engine.bench.round_progress import Progress
from engine.bench.rounds import race
from engine.bench.verify_cost import verify_costs
from engine.bench.weather import reading_milliseconds, steadiness
from engine.parts.loading import ModelPaths, load_models
from engine.trace import write_lines

FULL = Plan(prompts=4, rounds=3, tokens=128, schedules=())
QUICK = Plan(prompts=2, rounds=2, tokens=64, schedules=())


def openvino(
    paths: ModelPaths, prompts: dict[str, list[dict]], quick: bool, out: str | None
) -> None:
    """The suite of that name. Texts are compared with those of transformers' generate, which also takes part."""
    if out is not None:
        check_writable(Path(out))
    plan = QUICK if quick else FULL
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    peers = genai_contestants(paths)
    models = load_models(paths, needed(paths), "float32", "cpu")
    reference, ours = plain_generate(paths, "reference"), our_contestants(models)
    contestants = [reference, *peers, *ours]
    chosen = choose(models, prompts, plan)
    progress = Progress(len(contestants) * len(chosen) * plan.rounds)
    try:
        results = race(contestants, chosen, plan.rounds, plan.tokens, progress.tick)
    finally:
        progress.close()
    table = rows(results, {each.name: each.group for each in contestants})
    costs = verify_costs(models.target)
    reading = reading_milliseconds(models.target)
    steady = steadiness(ours, chosen[0].tokens)
    aims = goals_beside_openvino(table, costs[0] / reading, steady)
    different = differences(results, reference.name, reference.logits)
    spent = profiles(results)
    print(text(table, aims, different, costs, spent, compared=len(contestants) * len(chosen)))
    print(f"\n{_tokens_in_readings(table, reading)}")
    if out is not None:
        data = as_json(table, aims, different, costs, spent, setting(models, plan, ours))
        write_lines(out, [json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)


def _tokens_in_readings(table: Sequence[Row], reading: float) -> str:
    """How a token of plain decoding compares with reading the weights once, which takes ``reading`` milliseconds."""
    times = []
    for name in ("none", "openvino"):
        speeds = (row.tokens_per_second for row in table if row.contestant == name)
        times.append(1000 / geometric_mean(speeds) / reading)
    return (
        "a token of plain decoding / reading the weights: {:.2f} here, {:.2f} in openvino".format(
            *times
        )
    )
