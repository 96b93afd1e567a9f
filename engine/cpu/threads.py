"""How many threads compiled passes compute with: measured when the first of them is made.

On a quiet machine all cores are faster. Beside other busy processes a pass waits for its slowest thread
at each of its some fifty meeting points, and fewer threads may be ahead. Threads are OpenVINO's, which
sleep where there is nothing to do; none of them is tied to a core, for a core may be busy.
"""

from collections.abc import Callable, Sequence
from functools import cache
from statistics import fmean
from time import perf_counter

import numpy as np
import torch

ROUNDS = 20
WIDTH, DEPTH = 1024, 4  # of the pass that is measured: 16 MB of weights
CLEARLY = 0.9
"""Fewer threads must take less than this share of the time of all."""


def settings(count: int) -> dict:
    """Of OpenVINO: fp32 everywhere, one pass at a time, on so many threads."""
    return {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": count,
        "ENABLE_CPU_PINNING": False,
    }


@cache
def threads() -> int:
    """The number for this process. OMP_NUM_THREADS, which torch goes by, is the most."""
    most = torch.get_num_threads()
    counts = sorted({1, max(1, most // 2), most})
    if len(counts) == 1:
        return most
    passes = {count: _trial_pass(count) for count in counts}
    return fewest_that_pays({count: fmean(times) for count, times in _timed(passes).items()})


def fewest_that_pays(milliseconds: dict[int, float]) -> int:
    """By number of threads, the time of a pass: all of them, or what is clearly faster."""
    most, best = max(milliseconds), min(milliseconds, key=milliseconds.get)
    return best if milliseconds[best] < CLEARLY * milliseconds[most] else most


def _timed(passes: dict[int, Callable[[], object]]) -> dict[int, Sequence[float]]:
    """They take turns, so that a busy moment meets all of them; the first round warms up."""
    taken: dict[int, list[float]] = {count: [] for count in passes}
    for _ in range(ROUNDS + 1):
        for count, run in passes.items():
            began = perf_counter()
            run()
            taken[count].append(perf_counter() - began)
    return {count: times[1:] for count, times in taken.items()}


def _trial_pass(count: int) -> Callable[[], object]:
    """One row through a few products, on so many threads."""
    request = _trial_model(count).create_infer_request()
    row = np.zeros((1, WIDTH), np.float32)
    return lambda: request.infer([row])


def _trial_model(count: int):
    import openvino
    from openvino import opset13

    given = opset13.parameter([1, WIDTH], np.float32)
    row = given
    for seed in range(DEPTH):
        weight = np.full((WIDTH, WIDTH), 1 / WIDTH + seed, np.float32)
        row = opset13.matmul(row, weight, False, True)
    return openvino.Core().compile_model(openvino.Model([row], [given]), "CPU", settings(count))
