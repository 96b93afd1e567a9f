"""Measures times on a GPU with CUDA events. The L2 cache is flushed before each run, and a time is the median of many
runs.

Without a GPU, the same functions measure on the CPU, so that tests can run the suites at toy size.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

import torch

from engine.bench.gpu.costs import Ceilings
from engine.errors import UserError
from engine.fast.gpu.capture import Recorder

FLUSH_BYTES = 512 * 2**20  # several times any L2 cache


def require_gpu() -> None:
    """Raise UserError if there is no GPU, or if Triton does not run on it."""
    from engine.fast.kernels.lang import runs_on

    if not torch.cuda.is_available():
        raise UserError("This suite measures on a CUDA GPU and there is none here.")
    if not runs_on(here()):
        raise UserError("This suite measures Triton kernels, which do not run on this GPU.")


def here() -> torch.device:
    """The device on which the suites run: the current CUDA device, or the CPU if there is none."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


class Deadline:
    """The time that a suite may take, from now on. left: the seconds that are left."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._end - time.monotonic()


def captured(call: Callable[[], object]) -> Callable[[], object]:
    """A function that replays ``call`` as a CUDA graph, so that its time contains no gaps between launches; on a CPU,
    ``call`` itself. Raises whatever CUDA raises."""
    if here().type != "cuda":
        return call
    recorder = Recorder(here())
    recording = recorder.record(call, recorder)

    def replay(recorder=recorder) -> None:  # keeps the graph's memory allocated
        recording()

    return replay


def milliseconds(call: Callable[[], object], repeats: int = 40, flush: bool = True) -> float:
    """The median time of ``repeats`` runs in milliseconds, each measured between two CUDA events.

    flush: replace the contents of the L2 cache before each run, by reading other memory. The memory is not written,
    because the cache would then write it back while ``call`` runs. The read also keeps the GPU busy until the call is
    enqueued.
    """
    if here().type != "cuda":
        began = time.perf_counter()
        call()
        return 1000 * (time.perf_counter() - began)  # on a CPU the figures mean nothing
    for _ in range(3):
        call()
    waste = torch.zeros(FLUSH_BYTES // 4 if flush else 1, device="cuda")
    pairs = []
    for _ in range(repeats):
        waste.amax()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in pairs)


@contextlib.contextmanager
def timed(owner: type, name: str) -> Iterator[list[float]]:
    """A context manager that yields a list, to which every call of the method ``name`` appends the seconds that it
    took. owner: the method's class."""
    plain, seconds = owner.__dict__[name], []
    function = plain.__func__ if isinstance(plain, staticmethod) else plain

    def measured(*arguments, **named):
        began = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            seconds.append(time.perf_counter() - began)

    setattr(owner, name, staticmethod(measured) if isinstance(plain, staticmethod) else measured)
    try:
        yield seconds
    finally:
        setattr(owner, name, plain)


def ceilings(copied: int = 2**31, side: int = 8192) -> Ceilings:
    """The memory bandwidth and the matrix rate of this machine, measured with a copy of ``copied`` bytes and a bf16
    product of two matrices of side ``side``, on random data."""
    return Ceilings(_bandwidth(copied), _rate(side))


def _bandwidth(size: int) -> float:
    """The bytes per second, read plus written, of a copy of ``size`` bytes."""
    source = torch.randn(size // 4, device=here())
    target = torch.empty_like(source)
    return 2 * size * 1000 / milliseconds(lambda: target.copy_(source), 10, flush=False)


def _rate(size: int) -> float:
    """The operations per second of a bf16 product of two matrices of side ``size``."""
    a, b = (torch.randn(size, size, device=here()).bfloat16() for _ in range(2))
    return 2 * size**3 * 1000 / milliseconds(lambda: a @ b, 10, flush=False)
