"""The number of threads that compiled passes use, measured when the first graph is compiled.

On a quiet machine, using all cores is faster. Beside other busy processes, a pass waits for its slowest
thread at each of some fifty synchronisation points, and fewer threads may be faster. The threads are
OpenVINO's, which sleep when there is nothing to do; none is tied to a core, because a core may be busy.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import fmean
from time import perf_counter
from typing import TypeVar

import numpy as np
import torch

from engine.fast.cpu.runtime import core

K = TypeVar("K")

ROUNDS = 20
WIDTH, DEPTH = 1024, 4  # of the measured pass: 16 MB of weights
CLEARLY = 0.9
"""Fewer threads must take less than this share of the time that all threads take."""


def settings(count: int) -> dict:
    """Settings for OpenVINO: fp32 everywhere, one pass at a time, on ``count`` threads."""
    return {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": count,
        "ENABLE_CPU_PINNING": False,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,  # rows are never rounded to 8 bits
    }


@cache
def threads() -> int:
    """The number of threads for this process: at most torch's number, which follows OMP_NUM_THREADS."""
    most = torch.get_num_threads()
    counts = sorted({1, max(1, most // 2), most})
    if len(counts) == 1:
        return most
    passes = {count: _trial_pass(count) for count in counts}
    return fewest_that_pays({count: fmean(times) for count, times in timed(passes).items()})


def fewest_that_pays(milliseconds: dict[int, float]) -> int:
    """The number of threads to use: all threads, or the fastest number if it is clearly faster. milliseconds: time of a
    pass, by number of threads."""
    most, best = max(milliseconds), min(milliseconds, key=milliseconds.get)
    return best if milliseconds[best] < CLEARLY * milliseconds[most] else most


def timed(passes: Mapping[K, Callable[[], object]]) -> dict[K, Sequence[float]]:
    """The times of each pass in seconds, one for each of ``ROUNDS`` rounds. In every round all passes run, one after
    the other, so that a busy moment of the machine affects all of them. One further round comes first as a warm-up and
    is not returned."""
    seconds: dict[K, list[float]] = {count: [] for count in passes}
    for _ in range(ROUNDS + 1):
        for count, run in passes.items():
            began = perf_counter()
            run()
            seconds[count].append(perf_counter() - began)
    return {count: times[1:] for count, times in seconds.items()}


def _trial_pass(count: int) -> Callable[[], object]:
    """Return a function that runs one row through a few matrix products, on ``count`` threads, for timing."""
    request = _trial_model(count).create_infer_request()
    row = np.zeros((1, WIDTH), np.float32)
    return lambda: request.infer([row])


def _trial_model(count: int):
    import openvino
    from openvino import opset13

    row_input = opset13.parameter([1, WIDTH], np.float32)
    row = row_input
    for seed in range(DEPTH):
        weight = np.full((WIDTH, WIDTH), 1 / WIDTH + seed, np.float32)
        row = opset13.matmul(row, weight, False, True)
    return core().compile_model(openvino.Model([row], [row_input]), "CPU", settings(count))
