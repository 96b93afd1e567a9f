"""Milliseconds on a GPU: CUDA events, the L2 cache flushed, medians."""

import statistics
import time
from collections.abc import Callable

import torch

from engine.bench_gpu.costs import Ceilings
from engine.errors import UserError

FLUSH_BYTES = 512 * 2**20  # several times any L2 cache


def require_gpu() -> torch.device:
    """Raises UserError where there is none, or no Triton for it."""
    from engine.kernels.lang import AVAILABLE

    if not torch.cuda.is_available():
        raise UserError("This suite measures on a CUDA GPU and there is none here.")
    if not AVAILABLE:
        raise UserError("This suite measures Triton kernels and Triton is not installed.")
    return torch.device("cuda", torch.cuda.current_device())


class Deadline:
    """The time a suite may take; what does not fit is left out and named."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._end - time.monotonic()


def captured(call: Callable[[], object]) -> Callable[[], object]:
    """The call as a CUDA graph, so that its time holds no launch gaps; itself if it cannot be."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except RuntimeError:
        torch.cuda.synchronize()
        return call
    return graph.replay


def milliseconds(call: Callable[[], object], repeats: int = 40, flush: bool = True) -> float:
    """Median of ``repeats`` runs, each between two events behind a flush of the L2 cache."""
    for _ in range(3):
        call()
    waste = torch.empty(FLUSH_BYTES if flush else 0, dtype=torch.int8, device="cuda")
    pairs = []
    for _ in range(repeats):
        waste.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in pairs)


def host_milliseconds(call: Callable[[], object], repeats: int = 20) -> tuple[float, float]:
    """Medians of (time until the call returns, time until the GPU is done) from an idle GPU."""
    returned, done = [], []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        returned.append(time.perf_counter() - begin)
        torch.cuda.synchronize()
        done.append(time.perf_counter() - begin)
    return 1000 * statistics.median(returned), 1000 * statistics.median(done)


def ceilings() -> Ceilings:
    """A large copy and a large bf16 product, on random data."""
    return Ceilings(_bandwidth(2**31), _rate(8192))


def _bandwidth(size: int) -> float:
    """Bytes a second, read plus written, of a copy of ``size`` bytes."""
    source = torch.randn(size // 4, device="cuda")
    target = torch.empty_like(source)
    return 2 * size * 1000 / milliseconds(lambda: target.copy_(source), 10, flush=False)


def _rate(size: int) -> float:
    """Operations a second of a bf16 product of two size x size matrices."""
    a, b = (torch.randn(size, size, device="cuda").bfloat16() for _ in range(2))
    return 2 * size**3 * 1000 / milliseconds(lambda: a @ b, 10, flush=False)
