"""`python -m engine bench --peer openvino`: compares this engine with OpenVINO GenAI, in turns on the same prompts."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

import torch

from engine.bench.bench_figures import Row, geometric_mean
from engine.bench.contestants import Ours, chain, plain
from engine.bench.goals import Goal, goals_beside_openvino
from engine.bench.openvino.openvino_peers import genai_contestants
from engine.bench.peers import plain_generate
from engine.bench.peers_suite import Race, beside
from engine.bench.report import Report
from engine.bench.suite import Cards, Plan
from engine.core.threads import torch_threads
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths

FULL = Plan(prompts=4, rounds=3, tokens=128)
QUICK = Plan(prompts=2, rounds=2, tokens=64)


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report. Texts are compared with those of transformers' ``generate``, which also takes
    part."""
    peers = genai_contestants(paths)
    reference = plain_generate(paths, "reference")
    lines: list[str] = []

    def judge(race: Race) -> list[Goal]:
        reading = reading_milliseconds(race.models.target)
        ours = [contestant for contestant in race.suite.contestants if isinstance(contestant, Ours)]
        lines.append(_tokens_in_readings(race.table, reading))
        steady = steadiness(ours, race.suite.prompts[0].tokens)
        return goals_beside_openvino(race.table, race.costs[0] / reading, steady)

    plan = QUICK if quick else FULL
    report = beside(paths, workloads, plan, [reference, *peers], reference, judge, schedules=())
    return Report("\n\n".join([report.text, *lines]), report.data)


def _tokens_in_readings(table: Sequence[Row], reading: float) -> str:
    """A sentence for the report: the time of a token of plain decoding divided by the time of reading the weights once,
    for this engine and for OpenVINO. reading: the milliseconds of reading the weights once."""
    here, there = (
        geometric_mean(row.tokens_per_second for row in table if row.contestant == name)
        for name in (plain().key, "openvino")
    )
    return (
        f"a token of plain decoding / reading the weights: {1000 / here / reading:.2f} here, "
        f"{1000 / there / reading:.2f} in openvino"
    )


REPEATS = 40
BUSY_PROCESSES = 2
TEXTS, STEADY_TOKENS = 5, 96  # texts whose steps are timed, and the tokens of each text


def reading_milliseconds(target: LanguageModel) -> float:
    """The median milliseconds that it takes to read as many bytes as the model's weights have, on all of torch's
    threads."""
    weights = torch.ones(target.parameters, dtype=target.dtype)
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        weights.sum()
        times.append(1000 * (time.perf_counter() - began))
    return median(times)


def steadiness(ours: Sequence[Ours], prompt: Sequence[int]) -> dict[str, float]:
    """For plain decoding and the chain drafter, the median time of a step beside two busy processes, divided by that on
    a quiet machine, by name."""
    ratios = {}
    for contestant in ours:
        if contestant.name in (plain().key, chain().key):
            contestant.write(prompt, STEADY_TOKENS)
            alone = _step(contestant, prompt)
            with _busy():
                beside = _step(contestant, prompt)
            ratios[contestant.name] = beside / alone
    return ratios


def _step(contestant: Ours, prompt: Sequence[int]) -> float:
    """The median milliseconds of a step, over the steps of ``TEXTS`` continuations of the prompt."""
    with torch_threads(contestant.models.target.torch_threads):
        return median(
            sum(step.milliseconds.values())
            for _ in range(TEXTS)
            for step in contestant.steps(prompt, STEADY_TOKENS)
        )


@contextmanager
def _busy() -> Iterator[None]:
    spinning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)
    ]
    try:
        time.sleep(0.5)  # until they spin
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
