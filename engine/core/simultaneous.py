"""Running two functions at the same time, and timing each with a real clock."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from engine.core.threads import halved

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Timed(Generic[T]):
    """The result of a function, and when the function ran. start, end: milliseconds since ``Pair.run`` started both
    functions."""

    value: T
    start: float
    end: float


class Pair(ABC):
    """Runs two functions at the same time. Between two calls of ``run``, nothing runs."""

    @abstractmethod
    def run(self, main: Callable[[], T], side: Callable[[], U]) -> tuple[Timed[T], Timed[U]]:
        """Run both functions, and return both results once both functions have ended. If a function raises an
        exception, raise it, again only once both have ended; if both functions raise one, raise that of ``main``."""

    def close(self) -> None:
        """Free the threads and memory of the pair."""


class ThreadPair(Pair):
    """Runs the two functions in two threads on a CPU. They overlap because torch releases Python's global interpreter
    lock inside its kernels.

    While both functions run, each computes with half of torch's threads. The number of torch's threads is a setting of
    the whole process, so ``run`` restores it before it returns.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="side")

    def run(self, main, side):
        began = time.perf_counter()

        def timed(work: Callable[[], T]) -> Timed[T]:
            start = time.perf_counter()
            value = work()
            return Timed(value, (start - began) * 1000, (time.perf_counter() - began) * 1000)

        with halved():
            side_work = self._pool.submit(timed, side)
            try:
                own = timed(main)
            finally:
                wait([side_work])
        return own, side_work.result()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class StreamPair(Pair):
    """Runs the two functions on two CUDA streams, both launched from one thread. ``main`` is launched first, so that
    the device already works on it while the thread launches ``side``. Times are measured on the device, with CUDA
    events."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._side = torch.cuda.Stream(device)

    def run(self, main, side):
        here = torch.cuda.current_stream(self._device)
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        marks[0].record(here)
        self._side.wait_stream(here)
        try:
            own = main()
            marks[1].record(here)
            with torch.cuda.stream(self._side):
                marks[2].record(self._side)
                side_value = side()
                marks[3].record(self._side)
        finally:
            here.wait_stream(self._side)
            torch.cuda.synchronize(self._device)
        end, *others = (marks[0].elapsed_time(mark) for mark in marks[1:])
        return Timed(own, 0.0, end), Timed(side_value, *others)


def pair_on(device: torch.device) -> Pair:
    """The ``Pair`` for this device."""
    return StreamPair(device) if device.type == "cuda" else ThreadPair()
