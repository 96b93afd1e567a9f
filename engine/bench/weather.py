"""The state of the machine: how fast it reads memory, and how much slower steps are beside other
work."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

import torch

from engine.bench.contestants import Ours, chain, plain
from engine.core.threads import torch_threads
from engine.model.language_model import LanguageModel

REPEATS = 40
BUSY_PROCESSES = 2
TEXTS = 5  # of which the steps are taken


def reading_milliseconds(target: LanguageModel) -> float:
    """Median time of reading as many bytes as the model has weights, once, on all of torch's threads."""
    weights = torch.ones(target.parameters, dtype=target.dtype)
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        weights.sum()
        taken.append(1000 * (time.perf_counter() - began))
    return median(taken)


def steadiness(ours: Sequence[Ours], prompt: Sequence[int], count: int = 96) -> dict[str, float]:
    """By drafter, the median time of a step beside two busy processes, divided by that on a machine left
    alone."""
    found = {}
    for contestant in ours:
        if contestant.name in (plain().key, chain().key):
            contestant.write(prompt, count)
            alone = _step(contestant, prompt, count)
            with _busy():
                beside = _step(contestant, prompt, count)
            found[contestant.name] = beside / alone
    return found


def _step(contestant: Ours, prompt: Sequence[int], count: int) -> float:
    """The median time of a step of ``TEXTS`` continuations."""
    with torch_threads(contestant.models.target.torch_threads):
        return median(
            sum(step.milliseconds.values())
            for _ in range(TEXTS)
            for step in contestant.steps(prompt, count)
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
